// Makes the keys of objects in the object store. Each sandbox and each image has a prefix of its own. So two organizations have
// objects in common only if they use the same image.
const safe = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
/**
 * Form of an image's name. It must not begin with a dot: in a directory store, the name `..` would lead out of the directory
 * `images`.
 */
const safeImage = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** Whose files an archive contains: those of a sandbox's disk, or those of an image. */
export type Owner = { sandboxId: string; image?: never } | { image: string; sandboxId?: never }

const checked = (id: string, shape = safe): string => {
  if (!shape.test(id)) throw new TypeError('an id with more than letters, digits, - and _ is no part of a key')
  return id
}

export const ownerOf = ({ sandboxId, image }: Owner): Owner => (image === undefined ? { sandboxId } : { image })

export const prefixOf = ({ sandboxId, image }: Owner) =>
  image === undefined ? `sandboxes/${checked(sandboxId)}/` : `images/${checked(image, safeImage)}/`
export const manifestsOf = (owner: Owner) => `${prefixOf(owner)}archives/`
export const chunksOf = (owner: Owner) => `${prefixOf(owner)}chunks/`
export const manifestKey = (owner: Owner, archiveId: string) => `${manifestsOf(owner)}${checked(archiveId)}.json`
export const chunkKey = (owner: Owner, sha256: string) => `${chunksOf(owner)}${sha256}`
