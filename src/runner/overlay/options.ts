// The mount options of an overlay: read-only image layers below, the sandbox's writable layer on top.

/** In these options colons separate layers, commas separate options, and a backslash escapes them (kernel: overlayfs). */
const escaped = (path: string) => path.replace(/[\\:,]/g, '\\$&')

/** The first of `lowers` is the uppermost. */
export const overlayOptions = (lowers: readonly string[], upper: string, work: string): string => {
  if (lowers.length === 0) throw new Error('An overlay needs an image below it.')
  return `lowerdir=${lowers.map(escaped).join(':')},upperdir=${escaped(upper)},workdir=${escaped(work)}`
}
