// The mount options of an overlay: read-only image layers below, the sandbox's writable layer on top.

/** In these options colons separate layers, commas separate options, and a backslash escapes them (kernel: overlayfs). */
const escaped = (path: string) => path.replace(/[\\:,]/g, '\\$&')

/**
 * Directories of the image can be renamed: the overlay then records in the upper layer where their files are. It follows such a
 * record only to a directory of the image. Records that let a file show the content of another file stay off (docs/adr/0032).
 */
const renames = 'redirect_dir=on,metacopy=off'

/** The mount options of an overlay. The first of `lowers` is the uppermost lower layer. */
export const overlayOptions = (lowers: readonly string[], upper: string, work: string): string => {
  if (lowers.length === 0) throw new Error('An overlay needs an image below it.')
  return `lowerdir=${lowers.map(escaped).join(':')},upperdir=${escaped(upper)},workdir=${escaped(work)},${renames}`
}
