// Parses names of images in registries as Docker does: `alpine` is `docker.io/library/alpine:latest`.
import { ImageFailed } from './image-failed.ts'

export type Reference = {
  /** Host name of the registry, with the port if the name has one. */
  registry: string
  repository: string
  /** The tag or the digest of the image's name. If the name has both, this field has the digest. */
  version: { tag: string } | { digest: string }
}

const defaultRegistry = 'docker.io'
const longest = 255

const hostShape = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*$/
const portShape = /^\d{1,5}$/
const partShape = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/
const tagShape = /^\w[\w.-]{0,127}$/
export const digestShape = /^sha256:[0-9a-f]{64}$/

const refuse = (text: string, why: string): never => {
  throw new ImageFailed('invalid-reference', `"${text.slice(0, longest)}" is not the name of an image: ${why}.`)
}

/** Splits an image's full name into name, tag and digest: at the last `@`, then at a `:` after the last slash. */
const split = (text: string) => {
  const [, beforeDigest = text, digest] = /^([^@]*)@(.*)$/s.exec(text) ?? []
  const [, name = beforeDigest, tag] = /^(.*):([^/]*)$/s.exec(beforeDigest) ?? []
  return { name, tag, digest }
}

const isHost = (first: string) => /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase()

const checkRegistry = (registry: string, text: string) => {
  const [host = '', port, ...more] = registry.split(':')
  const portIsFine = port === undefined || (portShape.test(port) && Number(port) > 0 && Number(port) < 65_536)
  if (!hostShape.test(host) || !portIsFine || more.length > 0) refuse(text, 'its registry is not host or host:port')
}

export const parseReference = (text: string): Reference => {
  if (text.length > longest) refuse(text, `it is longer than ${longest} characters`)
  const { name, tag, digest } = split(text)
  const parts = name.split('/')
  const registry = parts.length > 1 && isHost(parts[0] as string) ? (parts.shift() as string) : defaultRegistry
  checkRegistry(registry, text)
  if (!parts.every((part) => partShape.test(part))) refuse(text, 'names are lower-case letters, digits and . _ - /')
  if (tag !== undefined && !tagShape.test(tag))
    refuse(text, 'its tag is too long or has characters that are not allowed')
  if (digest !== undefined && !digestShape.test(digest)) refuse(text, 'its digest is not sha256: and 64 digits')

  const isDocker = registry === defaultRegistry || registry === 'index.docker.io'
  return {
    registry: isDocker ? defaultRegistry : registry,
    repository: isDocker && parts.length === 1 ? `library/${parts[0]}` : parts.join('/'),
    version: digest === undefined ? { tag: tag ?? 'latest' } : { digest },
  }
}

export const formatReference = ({ registry, repository, version }: Reference): string =>
  `${registry}/${repository}${'digest' in version ? `@${version.digest}` : `:${version.tag}`}`

export const pinned = (reference: Reference, digest: string): Reference => ({ ...reference, version: { digest } })

/**
 * Returns the origin of an image: its repository, and the organization if the organization's credentials are used. A registry may
 * show different images to different organizations. Only images of one origin share files and layers.
 */
export const originOf = ({ registry, repository }: Reference, accountOf?: string): string =>
  accountOf === undefined ? `${registry}/${repository}` : `${registry}/${repository} as shown to ${accountOf}`

/** Whether the registry's name refers to this machine itself. Such a registry may be used only if the operator allows it. */
export const isThisMachine = ({ registry }: Pick<Reference, 'registry'>): boolean => {
  const host = (registry.split(':')[0] as string).toLowerCase()
  return host === 'localhost' || host.endsWith('.localhost') || /^(127|0)\./.test(host) || /^\d+$/.test(host)
}
