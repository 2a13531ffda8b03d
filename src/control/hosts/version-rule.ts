// Which versions of hosts work with which versions of control. While a server is upgraded, its programs have different
// versions.
import { Problem } from '#src/problems.ts'

type Release = { major: number; minor: number }

const readVersion = (text: string): Release | undefined => {
  const [, major, minor] = /^(\d{1,9})\.(\d{1,9})(?![\d])/.exec(text) ?? []
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) }
}

/** Whether programs of two versions work together: with the same major version, and minor versions at most 1 apart. */
const worksWith = (one: string, other: string): boolean => {
  const [a, b] = [readVersion(one), readVersion(other)]
  return a !== undefined && b !== undefined && a.major === b.major && Math.abs(a.minor - b.minor) <= 1
}

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
