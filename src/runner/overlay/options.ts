// Makes the mount options of a sandbox's overlay. Its lower layers are the image's files (read-only), and its upper layer is the
// sandbox's disk (writable).

/**
 * Escapes a path. In mount options of an overlay a colon separates layers, a comma separates options, and a backslash escapes
 * both (kernel: overlayfs).
 */
const escaped = (path: string) => path.replace(/[\\:,]/g, '\\$&')

/**
 * With these options, a sandbox can rename directories of its image. For a renamed directory, the overlay stores the old path in
 * an attribute (`redirect`) of the new directory. The path can lead only to directories of the image. `metacopy` stays off: with
 * it, a file could show the content of another file (docs/adr/0032).
 */
const renames = 'redirect_dir=on,metacopy=off'

/** Returns the mount options of an overlay. The first of `lowers` is the uppermost of the lower layers. */
export const overlayOptions = (lowers: readonly string[], upper: string, work: string): string => {
  if (lowers.length === 0) throw new Error('An overlay needs an image below it.')
  return `lowerdir=${lowers.map(escaped).join(':')},upperdir=${escaped(upper)},workdir=${escaped(work)},${renames}`
}
