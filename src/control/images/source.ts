// Parses what callers give as the source of a snapshot: an image name, a file or a definition.

import type { CreateBuildInfo } from '#src/control/build-info.ts'
import { Problem } from '#src/problems.ts'
import { contextHash } from '#src/wire/contexts.ts'
import type { Definition, ImageSource } from '#src/wire/runner-link.ts'

/** Matches the name of an image file on the runner's host, in the form of skopeo. The file must be in `ALCOVE_IMAGES_DIR`. */
const fileTransport = /^(?:oci|oci-archive|docker-archive):(.*)$/

const domain = /^(?:[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[a-f\d:]+\])(?::\d{1,5})?$/i
const part = /^[a-z\d]+(?:(?:[._]|__|-+)[a-z\d]+)*$/
const reference = /^(?<path>[^@]*?)(?::(?<tag>[\w][\w.-]{0,127}))?(?:@(?<digest>sha256:[a-f\d]{64}))?$/

const refuse = (why: string) => new Problem('bad_request', `imageName ${why}`)

const readFile = (path: string): ImageSource => {
  const isBelow = path !== '' && !path.startsWith('/') && !/[\0\\:]/.test(path) && !path.split('/').includes('..')
  if (!isBelow) throw refuse('must name a file below the images directory of the server, by a relative path')
  return { kind: 'file', path }
}

/**
 * Returns the full OCI reference of an image name, by the usual rules (https://github.com/distribution/reference). For example,
 * `python` becomes `docker.io/library/python:latest`. If the name has a digest, its tag is dropped, because the digest alone
 * decides.
 */
export const readReference = (text: string): string => {
  const { path = '', tag, digest } = reference.exec(text)?.groups ?? {}
  const names = path.split('/')
  const [first = ''] = names
  const hasDomain = names.length > 1 && (/[.:]/.test(first) || first === 'localhost')
  const host = hasDomain ? first : 'docker.io'
  const rest = hasDomain ? names.slice(1) : names
  const isOfficial = (host === 'docker.io' || host === 'index.docker.io') && rest.length === 1
  const isSound = text.length <= 512 && domain.test(host) && rest.every((name) => part.test(name))
  if (!isSound) throw refuse(`is "${text.slice(0, 100)}", which is not the name of an image`)
  const repository = [host, ...(isOfficial ? ['library'] : []), ...rest].join('/')
  return digest === undefined ? `${repository}:${tag ?? 'latest'}` : `${repository}@${digest}`
}

/** Reads a definition. Checks the form of the files' hashes, but not whether the files exist: the runner checks that. */
export const readDefinition = (
  { dockerfileContent, contextHashes: hashes = [] }: CreateBuildInfo,
  organizationId: string,
): Definition => {
  const wrong = hashes.find((hash) => !contextHash.test(hash))
  if (wrong !== undefined) throw new Problem('bad_request', `buildInfo.contextHashes has "${wrong}", which is no hash`)
  const definition = { kind: 'definition', dockerfile: dockerfileContent } as const
  return hashes.length === 0
    ? definition
    : { ...definition, contexts: { organizationId, hashes: [...new Set(hashes)] } }
}

export const readSource = (
  { imageName, buildInfo }: { name?: string; imageName?: string; buildInfo?: CreateBuildInfo },
  organizationId: string,
): ImageSource => {
  if ((imageName === undefined) === (buildInfo === undefined)) {
    throw new Problem('bad_request', 'A snapshot is made from imageName or from buildInfo: give one of them.')
  }
  if (buildInfo !== undefined) return readDefinition(buildInfo, organizationId)
  const name = (imageName as string).trim()
  const [, path] = fileTransport.exec(name) ?? []
  return path === undefined ? { kind: 'registry', reference: readReference(name) } : readFile(path)
}
