// Makes the keys of objects in the store. All keys of a sandbox begin with `sandboxes/ID/`, so different organizations never
// share an object.
const safe = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/

const checked = (id: string): string => {
  if (!safe.test(id)) throw new TypeError('an id with more than letters, digits, - and _ is no part of a key')
  return id
}

export const prefixOf = (sandboxId: string) => `sandboxes/${checked(sandboxId)}/`
export const manifestsOf = (sandboxId: string) => `${prefixOf(sandboxId)}archives/`
export const chunksOf = (sandboxId: string) => `${prefixOf(sandboxId)}chunks/`
export const manifestKey = (sandboxId: string, archiveId: string) =>
  `${manifestsOf(sandboxId)}${checked(archiveId)}.json`
export const chunkKey = (sandboxId: string, sha256: string) => `${chunksOf(sandboxId)}${sha256}`
