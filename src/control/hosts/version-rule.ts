// Refuses hosts whose version does not work with that of control.
import { worksWith } from '#src/kit/version.ts'
import { Problem } from '#src/problems.ts'

/** Maximum length of a version in a sentence. A WebSocket is closed with at most 123 bytes. */
const shown = (version: string) => version.replaceAll(/[^\w.+-]/g, '?').slice(0, 20)

/** Returns why a host with this version is refused. Undefined: it is not refused. */
export const refusalOfVersion = (ofHost: string, ofControl: string): string | undefined =>
  worksWith(ofHost, ofControl)
    ? undefined
    : `this host has version ${shown(ofHost)}, the server ${shown(ofControl)}: they may be at most one release apart`

/** Throws 409 if a host with this version is refused. */
export const checkVersion = (ofHost: string, ofControl: string): void => {
  const refusal = refusalOfVersion(ofHost, ofControl)
  if (refusal !== undefined) throw new Problem('conflict', `${refusal.replace(/^t/, 'T')}.`)
}
