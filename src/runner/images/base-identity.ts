// Identifies the files of a base image, so that a disk is used only with the files from which it was made (docs/adr/0046). Another
// host may have written an identity, so every field of an identity is checked.
import { createHash } from 'node:crypto'
import { type ImageConfig, imageConfigBounds } from '#src/wire/runner-link.ts'

/**
 * `sha256`: hash of the files as a tar stream. `salt`: a random number. The salt keeps hosts from guessing the names of other
 * hosts' files in the object store (`nameOfContent`).
 */
export type BaseContent = { sha256: string; salt: string }

export type BaseIdentity = {
  /** Digest, if the image is from a registry. Every host of the region pulls this digest. */
  digest?: string
  /** Name of the tree of the image's layers (trees.ts). A host with this tree need not fetch the files. */
  tree?: string
  /**
   * Hash and salt, which name the image's files in the object store. Absent with `digest`, because hosts then pull from the
   * registry.
   */
  content?: BaseContent
  config: ImageConfig
  /** User ids that the image needs and that are too large for the usual user id map of a sandbox (oci/ids.ts). */
  largeIds: readonly number[]
}

const hash = /^[0-9a-f]{64}$/
const digestShape = /^sha256:[0-9a-f]{64}$/
const saltShape = /^[0-9a-f]{32}$/
/** Maximum number of user ids in `largeIds`. If an identity from another host has more, this host refuses the identity. */
const mostLargeIds = 1000
/** The largest user id of Linux. The next number, 2^32 - 1, means "no user". */
const largestId = 2 ** 32 - 2

const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex')

/** Returns the name that a base image's tree gets on a host that fetches the image from the object store. */
export const treeOfContent = ({ salt, sha256 }: BaseContent): string => sha256Of(`${salt} ${sha256}`)
/** Returns the name of a base image's files in the object store. Messages to control use this name too. */
export const nameOfContent = (content: BaseContent): string => `base-${treeOfContent(content)}`

/** Returns the name that a host gives to the base image of disks that it restores. */
export const imageOfBase = ({ digest, tree, content, config, largeIds }: BaseIdentity): string => {
  const files = digest ?? [tree ?? null, content ? treeOfContent(content) : null]
  return `below-${sha256Of(JSON.stringify([files, config, largeIds]))}`
}

const isText = (value: unknown, most: number): value is string => typeof value === 'string' && value.length <= most
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isId = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= largestId

export const readContent = (value: unknown): BaseContent | undefined => {
  if (!isObject(value)) return undefined
  const { sha256, salt } = value
  const isRead = isText(sha256, 64) && hash.test(sha256) && isText(salt, 32) && saltShape.test(salt)
  return isRead ? { sha256, salt } : undefined
}

const readConfig = (value: unknown): ImageConfig | undefined => {
  if (!isObject(value)) return undefined
  const { words, wordCharacters, nameCharacters, pathCharacters, characters } = imageConfigBounds
  const { entrypoint, env, user, workdir } = value
  if (!Array.isArray(entrypoint) || entrypoint.length > words || !isObject(env)) return undefined
  const variables = Object.entries(env)
  const all: unknown[] = [...entrypoint, ...Object.values(env)]
  if (!all.every((word): word is string => isText(word, wordCharacters))) return undefined
  if (!variables.every(([name]) => name.length <= nameCharacters)) return undefined
  if (!isText(user, nameCharacters) || !isText(workdir, pathCharacters)) return undefined
  const length = [...all, ...variables.map(([name]) => name)].reduce((sum, word) => sum + word.length, 0)
  return length > characters ? undefined : { entrypoint, env: env as Record<string, string>, user, workdir }
}

/** Checks an identity, which another host may have written. Returns undefined if a field is invalid. */
export const readIdentity = (value: unknown): BaseIdentity | undefined => {
  if (!isObject(value)) return undefined
  const { digest, tree, largeIds } = value
  const content = readContent(value['content'])
  const config = readConfig(value['config'])
  if (config === undefined || (value['content'] !== undefined && content === undefined)) return undefined
  if (digest !== undefined && !(isText(digest, 71) && digestShape.test(digest))) return undefined
  if (tree !== undefined && !(isText(tree, 64) && hash.test(tree))) return undefined
  if ((digest === undefined) === (content === undefined)) return undefined
  if (!Array.isArray(largeIds) || largeIds.length > mostLargeIds || !largeIds.every(isId)) return undefined
  return {
    ...(digest === undefined ? {} : { digest }),
    ...(tree === undefined ? {} : { tree }),
    ...(content === undefined ? {} : { content }),
    config,
    largeIds,
  }
}
