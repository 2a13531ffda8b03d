// Reads from the URL of an S3 call its object and its parameters. The bucket contains only `{organization}/{hash}/context.tar`.
import { contextBucket, contextHash } from '#src/wire/contexts.ts'
import { S3Refusal } from './refusal.ts'

export type Place = { query: ReadonlyMap<string, string>; key: { organizationId: string; hash: string } | undefined }

const path = new RegExp(`^/${contextBucket}(?:/(.*))?$`)

/** Whether a call of this URL is for the object storage. */
export const isObjectStorage = (url: string): boolean => path.test(url.split('?', 1)[0] as string)

export const readPlace = (url: string): Place => {
  const [before = '', after = ''] = url.split(/\?(.*)/s)
  const parameters = [...new URLSearchParams(after)]
  const query = new Map(parameters)
  // Refuse duplicate parameters: the signature check and the call itself might read different values of one parameter.
  if (query.size !== parameters.length) throw new S3Refusal('InvalidRequest', 'A query parameter is used twice.')
  const [, rest = ''] = path.exec(before) ?? []
  if (rest === '') return { query, key: undefined }
  const [, organizationId, hash = ''] = /^([\w-]{1,128})\/([^/]+)\/context\.tar$/.exec(rest) ?? []
  if (organizationId === undefined || !contextHash.test(hash))
    throw new S3Refusal('AccessDenied', 'The key of an object must be {organization}/{hash}/context.tar.')
  return { query, key: { organizationId, hash } }
}
