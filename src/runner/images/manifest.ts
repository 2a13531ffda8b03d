// Parses the index, manifest and configuration of an image (OCI, Docker schema 2). Such files come from registries that callers
// choose, so invalid values are refused.
import { type ImageConfig, imageConfigBounds } from '#src/wire/runner-link.ts'
import { ImageFailed } from './image-failed.ts'
import { digestShape } from './reference.ts'

export type Descriptor = { digest: string; size: number }

export type Manifest = { config: Descriptor; layers: Descriptor[] }

type Platform = { os: string; architecture: string }

type IndexEntry = Descriptor & { platform: Platform | undefined; isArtifact: boolean }

/** The part of an image's configuration that a definition needs from its base image. */
export type ContainerConfig = {
  entrypoint: string[]
  cmd: string[]
  env: Record<string, string>
  /** The user as written: a name or number, perhaps with a group after a colon. */
  user: string
  workdir: string
  /** The shell for commands that are not written as lists. Absent: `/bin/sh -c`. */
  shell?: string[]
  /** Instructions of the image's author that run in each definition that begins with this image. */
  onbuild?: string[]
}

export type Described = Platform & { diffIds: string[]; config: ContainerConfig }

/** Maximum number of layers of an image. Docker has an equal limit. */
const mostLayers = 127
const largestManifestBytes = 4 * 1024 * 1024

const broken = (what: string) => new ImageFailed('corrupted', `The image is damaged: ${what}.`)

type Fields = Record<string, unknown>

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fieldsOf = (text: string, what: string): Fields => {
  if (text.length > largestManifestBytes) throw broken(`${what} is too large`)
  try {
    const value: unknown = JSON.parse(text)
    if (isFields(value)) return value
  } catch {}
  throw broken(`${what} is not JSON`)
}

const textOf = (value: unknown, what: string): string => {
  if (value === undefined || value === null) return ''
  if (typeof value !== 'string' || value.includes('\0')) throw broken(`${what} is not text`)
  return value.toWellFormed()
}

const textsOf = (value: unknown, what: string): string[] => {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw broken(`${what} is not a list`)
  return value.map((item) => textOf(item, what))
}

const descriptorOf = (value: unknown, what: string): Descriptor => {
  const { digest, size } = isFields(value) ? value : {}
  if (typeof digest !== 'string' || !digestShape.test(digest)) throw broken(`${what} has no sha256 digest`)
  if (!Number.isSafeInteger(size) || (size as number) < 0) throw broken(`${what} has no size`)
  return { digest, size: size as number }
}

const listOf = (value: unknown, what: string): unknown[] => {
  if (!Array.isArray(value)) throw broken(`${what} is missing`)
  return value
}

const platformOf = (value: unknown): Platform | undefined =>
  isFields(value) ? { os: String(value['os']), architecture: String(value['architecture']) } : undefined

const layerKinds = [
  'application/vnd.oci.image.layer.v1.tar',
  'application/vnd.oci.image.layer.v1.tar+gzip',
  'application/vnd.oci.image.layer.v1.tar+zstd',
  'application/vnd.docker.image.rootfs.diff.tar.gzip',
  'application/vnd.docker.image.rootfs.diff.tar.zstd',
]

/** Throws if the layer's kind is not in `layerKinds`, for example an encrypted or a Windows layer. */
const checkKind = (mediaType: unknown) => {
  if (layerKinds.includes(String(mediaType))) return
  const sentence = `A layer of the image is of a kind that is not supported (${String(mediaType).slice(0, 100)}).`
  throw new ImageFailed('unsupported', sentence)
}

/** Media types of an image's configuration. Only an early version of Docker wrote `application/octet-stream`. */
const configKinds = [
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
  'application/octet-stream',
]

/** Throws for an artifact that is no image, such as a chart, a signature or a model. */
const checkIsImage = (fields: Fields) => {
  const config = isFields(fields['config']) ? fields['config'] : {}
  const kind = fields['artifactType'] ?? config['mediaType']
  if (kind === undefined && fields['config'] !== undefined) return
  if (fields['artifactType'] === undefined && configKinds.includes(String(kind))) return
  const named = String(kind ?? fields['mediaType']).slice(0, 100)
  const sentence = `This is not a container image but another kind of artifact (${named}).`
  throw new ImageFailed('unsupported', sentence)
}

/** Parses the manifest of an image, or an index of images for several platforms. */
export const parseManifest = (text: string): { manifest: Manifest } | { index: IndexEntry[] } => {
  const fields = fieldsOf(text, 'its manifest')
  if (Array.isArray(fields['manifests'])) {
    const entries = fields['manifests'].map((entry) => ({
      ...descriptorOf(entry, 'an entry of its index'),
      platform: isFields(entry) ? platformOf(entry['platform']) : undefined,
      isArtifact: isFields(entry) && entry['artifactType'] !== undefined,
    }))
    return { index: entries }
  }
  if (fields['schemaVersion'] === 1)
    throw new ImageFailed(
      'unsupported',
      'The image has the format that Docker gave up in 2017 (schema 1), which is not supported.',
    )
  checkIsImage(fields)
  const layers = listOf(fields['layers'], 'its list of layers')
  for (const layer of layers) {
    checkKind(isFields(layer) ? layer['mediaType'] : undefined)
    // A layer with `urls` is refused: the layer would be downloaded from these addresses, which the image's author chooses.
    if (isFields(layer) && layer['urls'] !== undefined)
      throw new ImageFailed(
        'unsupported',
        'The image has a layer that is stored outside of its registry, which is not supported.',
      )
  }
  if (layers.length > mostLayers)
    throw new ImageFailed(
      'too-many-layers',
      `The image has ${layers.length} layers; at most ${mostLayers} are allowed.`,
    )
  return {
    manifest: {
      config: descriptorOf(fields['config'], 'its configuration'),
      layers: layers.map((layer) => descriptorOf(layer, 'a layer')),
    },
  }
}

/** The name of this host's processor architecture, as images write it. */
export const ownArchitecture = process.arch === 'x64' ? 'amd64' : process.arch

const nameOf = ({ os, architecture }: Platform) => `${os}/${architecture}`.slice(0, 60)

const isOurs = ({ os, architecture }: Platform) => os === 'linux' && architecture === ownArchitecture

const wrongArchitecture = (offered: readonly Platform[]) =>
  new ImageFailed(
    'wrong-architecture',
    `The image is for ${offered.slice(0, 10).map(nameOf).join(', ') || 'no platform'}; this runner is linux/${ownArchitecture}.`,
  )

/**
 * Finds the index entry for this host's platform. An entry without a platform is accepted here: the platform in the image's
 * configuration is checked later.
 */
export const ourEntryOf = (index: readonly IndexEntry[]): Descriptor => {
  const images = index.filter(({ isArtifact }) => !isArtifact)
  const ours =
    images.find(({ platform }) => platform !== undefined && isOurs(platform)) ??
    images.find(({ platform }) => platform === undefined)
  if (ours !== undefined) return ours
  throw wrongArchitecture(index.flatMap(({ platform }) => (platform?.os === 'unknown' ? [] : (platform ?? []))))
}

const environmentOf = (lines: readonly string[]): Record<string, string> => {
  const pairs = lines.map((line) => {
    const at = line.indexOf('=')
    if (at <= 0) throw broken('its environment has an entry that is not NAME=value')
    return [line.slice(0, at), line.slice(at + 1)] as const
  })
  return Object.fromEntries(pairs)
}

const someOf = <Name extends string>(name: Name, texts: string[]) =>
  (texts.length === 0 ? {} : { [name]: texts }) as { [key in Name]?: string[] }

export const parseConfig = (text: string): Described => {
  const fields = fieldsOf(text, 'its configuration')
  const config = isFields(fields['config']) ? fields['config'] : {}
  const rootfs = isFields(fields['rootfs']) ? fields['rootfs'] : {}
  const described: Described = {
    os: textOf(fields['os'], 'its operating system'),
    architecture: textOf(fields['architecture'], 'its architecture'),
    diffIds: textsOf(rootfs['diff_ids'], 'its list of layers'),
    config: {
      entrypoint: textsOf(config['Entrypoint'], 'its entrypoint'),
      cmd: textsOf(config['Cmd'], 'its command'),
      env: environmentOf(textsOf(config['Env'], 'its environment')),
      user: textOf(config['User'], 'its user'),
      workdir: textOf(config['WorkingDir'], 'its working directory'),
      ...someOf('shell', textsOf(config['Shell'], 'its shell')),
      ...someOf('onbuild', textsOf(config['OnBuild'], 'its list of triggers')),
    },
  }
  if (!described.diffIds.every((id) => digestShape.test(id))) throw broken('a layer has no sha256 digest')
  if (!isOurs(described)) throw wrongArchitecture([described])
  checkConfig(described.config)
  return described
}

/** Throws if the configuration is larger than Linux allows for the arguments and environment of a program. */
export const checkConfig = (config: ContainerConfig): void => {
  const { entrypoint, cmd, env, user, workdir, shell = [], onbuild = [] } = config
  const { words, wordCharacters, nameCharacters, pathCharacters, characters } = imageConfigBounds
  const refuse = (what: string) => {
    throw new ImageFailed('unsupported', `The configuration of the image is too large: ${what}.`)
  }
  const command = [...entrypoint, ...cmd]
  const variables = Object.entries(env)
  if (command.length > words) refuse(`its command has more than ${words} words`)
  if (command.some((word) => word.length > wordCharacters)) refuse('a word of its command is longer than 128 KiB')
  if (variables.some(([name, value]) => name.length + 1 + value.length > wordCharacters))
    refuse('a variable is longer than 128 KiB')
  if ([user, ...variables.map(([name]) => name)].some((text) => text.length > nameCharacters))
    refuse(`its user or the name of a variable is longer than ${nameCharacters} characters`)
  if (workdir.length > pathCharacters) refuse(`its working directory is longer than ${pathCharacters} characters`)
  if (shell.length + onbuild.length > words) refuse(`its SHELL and ONBUILD have more than ${words} words`)
  const total = [...command, ...variables.flat(), ...shell, ...onbuild].reduce((sum, text) => sum + text.length, 0)
  if (total > characters) refuse('its command and environment together are longer than 256 KiB')
}

/** The part of the configuration that a sandbox needs. `entrypoint` and `cmd` become one command line. */
export const imageConfigOf = ({ entrypoint, cmd, env, user, workdir }: ContainerConfig): ImageConfig => ({
  entrypoint: [...entrypoint, ...cmd],
  env,
  user: user.startsWith(':') || user === '' ? `root${user}` : user,
  workdir: workdir.startsWith('/') ? workdir : `/${workdir}`,
})
