// Makes the keys of the objects of a context. The keys begin with the organization's own prefix, so organizations share no object.
import { contextHash } from '#src/wire/contexts.ts'

const organization = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
const upload = /^[0-9a-f]{32}$/

export const root = 'contexts/'

export type ContextName = { organizationId: string; hash: string }

export const isContextName = ({ organizationId, hash }: ContextName): boolean =>
  organization.test(organizationId) && contextHash.test(hash)

export const allOf = (organizationId: string): string => {
  if (!organization.test(organizationId)) throw new TypeError('no id of an organization')
  return `${root}${organizationId}/`
}

export const prefixOf = (name: ContextName): string => {
  if (!isContextName(name)) throw new TypeError('no name of a context')
  return `${root}${name.organizationId}/${name.hash}/`
}

/**
 * Returns the key of a context's table, which lists its chunks. The table is written last, so a context with a table is complete.
 */
export const tableKey = (name: ContextName) => `${prefixOf(name)}context.json`
/**
 * Returns the key of a context's marker, which is written first. The marker's time shows whether an incomplete context was
 * abandoned.
 */
export const begunKey = (name: ContextName) => `${prefixOf(name)}begun.json`
export const chunksOf = (name: ContextName) => `${prefixOf(name)}chunks/`

export const isUploadId = (id: string): boolean => upload.test(id)
const uploadOf = (name: ContextName, id: string) => {
  if (!isUploadId(id)) throw new TypeError('no id of an upload')
  return `${prefixOf(name)}uploads/${id}/`
}
export const uploadKey = (name: ContextName, id: string) => `${uploadOf(name, id)}upload.json`
export const partsOf = uploadOf
export const partKey = (name: ContextName, id: string, part: number) => `${uploadOf(name, id)}${part}.json`

/** Returns the id of the upload to which an object with this key belongs. Undefined if it belongs to none. */
export const uploadIn = (key: string): string | undefined =>
  /^contexts\/[^/]+\/[^/]+\/uploads\/([0-9a-f]{32})\//.exec(key)?.[1]

/** Returns the context to which an object with this key belongs. Undefined if it belongs to none. */
export const nameOf = (key: string): ContextName | undefined => {
  const [, organizationId, hash] = /^contexts\/([^/]+)\/([^/]+)\//.exec(key) ?? []
  if (organizationId === undefined || hash === undefined) return undefined
  return isContextName({ organizationId, hash }) ? { organizationId, hash } : undefined
}
