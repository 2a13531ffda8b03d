// Refuses a host if its major version differs from control's, or if its minor version differs by 2 or more.
import { worksWith } from '#src/kit/version.ts'
import { Problem } from '#src/problems.ts'

/** Shortens a version for an error message, because the close frame of a WebSocket may have at most 123 bytes. */
const shown = (version: string) => version.replaceAll(/[^\w.+-]/g, '?').slice(0, 20)

/** Returns why a host with this version is refused, or undefined if the host is accepted. */
export const refusalOfVersion = (ofHost: string, ofControl: string): string | undefined =>
  worksWith(ofHost, ofControl)
    ? undefined
    : `this host has version ${shown(ofHost)}, the server ${shown(ofControl)}: they may be at most one release apart`

/** Throws 409 if a host with this version is refused. */
export const checkVersion = (ofHost: string, ofControl: string): void => {
  const refusal = refusalOfVersion(ofHost, ofControl)
  if (refusal !== undefined) throw new Problem('conflict', `${refusal.replace(/^t/, 'T')}.`)
}
