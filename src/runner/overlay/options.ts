// Makes the mount options of a sandbox's overlay.

/** In mount options of an overlay, a colon separates layers, and a comma separates options. */
const escaped = (path: string) => path.replace(/[\\:,]/g, '\\$&')

/**
 * `redirect_dir=on`: a sandbox can rename directories of its image. The overlay stores the old path with the new directory. This
 * old path can lead only to directories of the image. `metacopy=off`: otherwise a file could show the content of another file
 * (docs/adr/0032).
 */
const renames = 'redirect_dir=on,metacopy=off'

/** Returns the mount options of an overlay. The first of `lowers` is the uppermost of the lower layers. */
export const overlayOptions = (lowers: readonly string[], upper: string, work: string): string => {
  if (lowers.length === 0) throw new Error('An overlay needs an image below it.')
  return `lowerdir=${lowers.map(escaped).join(':')},upperdir=${escaped(upper)},workdir=${escaped(work)},${renames}`
}
