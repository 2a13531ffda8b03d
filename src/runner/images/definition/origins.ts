// Finds what FROM, `--from` and mounts of a definition refer to: an earlier stage, a snapshot, or an image of a registry.
import { ownArchitecture } from '../manifest.ts'
import { parseReference } from '../reference.ts'
import { type At, refuse } from './instructions.ts'

export type Origin = { stage: number } | { image: string }

/** Whether FROM names a stage. */
export const isOnStage = (from: Origin | 'scratch'): from is { stage: number } => from !== 'scratch' && 'stage' in from

type Named = { name: string | undefined }

/**
 * Snapshots that FROM and `--from` may name. Such a name always means the snapshot, never an image. A snapshot's name need not be a
 * valid image name.
 */
type Snapshots = ReadonlySet<string>

/** Refuses a variable in `--from`: the variable has no value yet when the builder chooses the stages to build. */
export const refuseVariable = (at: At, text: string): never =>
  refuse(at, '--from must not contain a variable', `write a stage FROM ${text.slice(0, 60)} AS name, and --from=name`)

/** Finds what the `--from` of a COPY or a mount refers to: a stage by its name or number, otherwise an image. */
export const originOf = (at: At, text: string, stages: readonly Named[], own: number, snapshots: Snapshots): Origin => {
  if (text.includes('$')) return refuseVariable(at, text)
  const named = stages.findLastIndex(({ name }) => name === text.toLowerCase())
  const stage = named === -1 && /^\d{1,4}$/.test(text) ? Number(text) : named
  if (stage === -1) return { image: imageOf(at, text, snapshots, 'other stage') }
  if (stage >= stages.length || stage === own)
    return refuse(at, `--from=${text} names no other stage`, 'write the name of a stage, or its number from 0 on')
  return { stage }
}

/** Returns the base that FROM names: an earlier stage, an image, or `scratch` (no files). */
export const baseOf = (at: At, text: string, stages: readonly Named[], snapshots: Snapshots): Origin | 'scratch' => {
  if (text === 'scratch') return text
  const stage = stages.findLastIndex(({ name }) => name === text.toLowerCase())
  return stage === -1 ? { image: imageOf(at, text, snapshots, 'earlier stage') } : { stage }
}

const imageOf = (at: At, text: string, snapshots: Snapshots, stage: 'earlier stage' | 'other stage'): string => {
  try {
    if (snapshots.has(text)) return text
    parseReference(text)
    return text
  } catch (error) {
    return refuse(
      at,
      `${(error as Error).message.replace(/\.$/, '')}, and no ${stage} has this name`,
      'write registry/name:tag, or the name after AS in the FROM of a stage',
    )
  }
}

const aliases: Record<string, string> = { x86_64: 'amd64', 'x86-64': 'amd64', aarch64: 'arm64', 'arm64/v8': 'arm64' }

/** Refuses a `--platform` that this host cannot run. */
export const checkPlatform = (at: At, text: string): void => {
  const [, system = '', architecture = system] = /^(?:([^/]*)\/)?(.*)$/s.exec(text.toLowerCase()) ?? []
  const isOurs =
    (system === 'linux' || !text.includes('/')) && (aliases[architecture] ?? architecture) === ownArchitecture
  if (text === '' || text === 'linux' || text === 'local' || isOurs) return
  refuse(
    at,
    `--platform=${text.slice(0, 60)} cannot run here, as this server is linux/${ownArchitecture}`,
    `leave --platform out or write --platform=linux/${ownArchitecture}`,
  )
}

const platform = `linux/${ownArchitecture}`

/**
 * Variables that describe this host's platform. FROM may use them directly. A line of a stage may use such a variable only after an
 * ARG for it.
 */
export const platformArgs: Readonly<Record<string, string>> = {
  TARGETPLATFORM: platform,
  TARGETOS: 'linux',
  TARGETARCH: ownArchitecture,
  TARGETVARIANT: '',
  BUILDPLATFORM: platform,
  BUILDOS: 'linux',
  BUILDARCH: ownArchitecture,
  BUILDVARIANT: '',
}
