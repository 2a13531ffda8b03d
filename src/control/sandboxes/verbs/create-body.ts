// Validates the body of a create and fills in all defaults. The error for an unsupported field names that field.

import { readDisplayText } from '#src/control/display-text.ts'
import { isTokenLike, looksLikeId } from '#src/control/id-like.ts'
import { readDefinition } from '#src/control/images/source.ts'
import { type AskedSecrets, readSecrets } from '#src/control/secrets/mounting.ts'
import { readServiceUrl } from '#src/control/service-url.ts'
import { readMounts } from '#src/control/volumes/mounting.ts'
import { Problem } from '#src/problems.ts'
import type { Definition, VolumeMount } from '#src/wire/runner-link.ts'
import { askedOf } from '../record/columns.ts'
import { type NetworkColumns, networkOfNew } from '../record/network-policy.ts'
import type { CreateSandbox } from '../record/schemas.ts'
import { maxAutoArchiveInterval } from '../record/schemas.ts'
import { checkEnv, checkMap } from '../record/variables.ts'
import { destroyedPrefix } from './destroy.ts'

export type Wish = {
  name: string | undefined
  snapshot: string | undefined
  /** The definition from which the sandbox's image is built. Undefined: the sandbox is made from a snapshot. */
  definition: Definition | undefined
  target: string | undefined
  user: string | undefined
  env: Record<string, string>
  labels: Record<string, string>
  /** Fields of the body that are stored as they are. */
  asIs: ReturnType<typeof askedOf>
  network: NetworkColumns
  /** Telemetry endpoint. Null: the endpoint of the region. */
  otelEndpoint: string | null
  cpu: number | undefined
  memory: number | undefined
  disk: number | undefined
  autoStopInterval: number
  autoPauseInterval: number
  autoArchiveInterval: number
  autoDeleteInterval: number
  /** Lifetime in minutes. Undefined: the default of the region. */
  ttlMinutes: number | undefined
  /** The requested volumes, by id or name. */
  volumes: VolumeMount[]
  secrets: AskedSecrets
}

const isAsked = (value: unknown): boolean => {
  if (value === undefined || value === null || value === false || value === 0 || value === '') return false
  return !(Array.isArray(value) && value.length === 0)
}

const notBuilt = [
  'gpu',
  'gpuType',
  'linkedSandbox',
  'outboundProxyUrl',
] as const satisfies readonly (keyof CreateSandbox)[]

export const checkName = (given: string): string => {
  const name = readDisplayText('name', given)
  const refuse = (why: string) => new Problem('bad_request', `name ${why}`)
  if (/[/\\?#%]/.test(name)) throw refuse('must not contain / \\ ? # or %, because it is used in paths')
  if (name === '.' || name === '..') throw refuse('must not be . or ..')
  if (name.startsWith(destroyedPrefix)) throw refuse(`must not begin with ${destroyedPrefix}, which is reserved`)
  if (looksLikeId(name)) throw refuse('must not look like an id')
  if (isTokenLike(name)) {
    throw refuse(
      'must not be 16 letters and digits, which is how tokens of signed previews look; add a dash, for example',
    )
  }
  return name
}

/** Returns the minutes without activity after which the sandbox is stopped or paused; 0: never. Default: stopped after 15. */
const readIdleIntervals = ({ autoStopInterval, autoPauseInterval = 0, autoDeleteInterval }: CreateSandbox) => {
  if (autoPauseInterval === 0) return { autoStopInterval: autoStopInterval ?? 15, autoPauseInterval }
  if (autoStopInterval) throw new Problem('bad_request', 'autoStopInterval and autoPauseInterval cannot both be set')
  if (autoDeleteInterval === 0) {
    throw new Problem('bad_request', 'autoPauseInterval cannot be set for a sandbox that is deleted when it stops')
  }
  return { autoStopInterval: 0, autoPauseInterval }
}

export const checkBody = (
  body: CreateSandbox,
  organization: { id: string; sandboxLimitedNetworkEgress: boolean },
): Wish => {
  const unbuilt = notBuilt.filter((field) => isAsked(body[field]))
  if (unbuilt.length > 0) throw new Problem('unprocessable', `${unbuilt.join(', ')}: not supported yet`)
  if (body.snapshot !== undefined) {
    if (body.buildInfo) throw new Problem('bad_request', 'snapshot and buildInfo cannot both be given')
    const size = (['cpu', 'memory', 'disk'] as const).filter((field) => body[field] !== undefined)
    if (size.length > 0)
      throw new Problem('bad_request', `${size.join(', ')} cannot be given with snapshot, which has its own`)
  }
  if (body.spot) throw new Problem('bad_request', 'spot is for sandboxes with a gpu, and there are none yet')
  const archive = body.autoArchiveInterval ?? 10_080
  return {
    name: body.name === undefined ? undefined : checkName(body.name),
    snapshot: body.snapshot,
    definition: body.buildInfo && readDefinition(body.buildInfo, organization.id),
    target: body.target,
    user: body.user,
    env: checkEnv(body.env ?? {}),
    labels: checkMap('labels', body.labels ?? {}),
    asIs: askedOf(body),
    network: networkOfNew(body, organization.sandboxLimitedNetworkEgress),
    otelEndpoint: body.otelEndpointOverride ? readServiceUrl('otelEndpointOverride', body.otelEndpointOverride) : null,
    cpu: body.cpu,
    memory: body.memory,
    disk: body.disk,
    ...readIdleIntervals(body),
    autoArchiveInterval: archive === 0 ? maxAutoArchiveInterval : Math.min(archive, maxAutoArchiveInterval),
    autoDeleteInterval: Math.max(body.autoDeleteInterval ?? -1, -1),
    ttlMinutes: body.ttlMinutes,
    volumes: readMounts(body.volumes ?? []),
    secrets: readSecrets(body.secrets ?? []),
  }
}
