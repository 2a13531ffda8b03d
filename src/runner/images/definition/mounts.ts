// Parses `RUN --mount=…`. A mount is present at its path while one command runs, and is not part of the image.
import { posix } from 'node:path'
import { type At, refuse } from './instructions.ts'
import type { Origin } from './origins.ts'

export type Mount =
  | { type: 'cache'; id: string; target: string; mode: number; uid: number; gid: number; from?: Origin; source: string }
  /** `from`: the stage or image that is mounted. Without `from`, the files that came with the definition are mounted. */
  | { type: 'bind'; target: string; source: string; from?: Origin }
  | { type: 'tmpfs'; target: string }
  /**
   * A `secret` or `ssh` mount is accepted, but the command runs without the mount: Alcove's builds have no secrets and no SSH
   * agent.
   */
  | { type: 'secret' | 'ssh'; id: string }

const kinds = ['cache', 'bind', 'tmpfs', 'secret', 'ssh']

const shortNames: Record<string, string> = {
  src: 'source',
  dst: 'target',
  destination: 'target',
  rw: 'readwrite',
  ro: 'readonly',
}

/** The allowed options of each kind of mount. Some of these options have no effect. */
const known: Record<Mount['type'], readonly string[]> = {
  cache: ['id', 'target', 'mode', 'uid', 'gid', 'from', 'source', 'sharing', 'readonly', 'readwrite'],
  bind: ['target', 'source', 'from', 'readwrite', 'readonly'],
  tmpfs: ['target', 'size'],
  secret: ['id', 'target', 'source', 'required', 'mode', 'uid', 'gid', 'env', 'type'],
  ssh: ['id', 'target', 'required', 'mode', 'uid', 'gid'],
}

const noSecrets = 'builds get no secrets and no SSH keys'
const noSecretsInstead =
  'fetch the files yourself and COPY them, or run the command in the sandbox; without required=true the command runs without the secret'

type Place = { at: At; workdir: string; originOf: (text: string) => Origin }

export const mountOf = (value: string, { at, workdir, originOf }: Place): Mount => {
  const fields = new Map(
    value.split(',').map((part): [string, string] => {
      const end = part.indexOf('=')
      const key = (end < 0 ? part : part.slice(0, end)).trim().toLowerCase()
      return [shortNames[key] ?? key, end < 0 ? 'true' : part.slice(end + 1)]
    }),
  )
  const type = (fields.get('type') ?? 'bind') as Mount['type']
  fields.delete('type')
  if (!kinds.includes(type))
    return refuse(at, `--mount has no type "${type.slice(0, 40)}"`, `write one of ${kinds.join(', ')}`)
  const wrong = [...fields.keys()].find((key) => !known[type].includes(key))
  if (wrong !== undefined)
    return refuse(
      at,
      `--mount=type=${type} has no option "${wrong.slice(0, 40)}"`,
      `write only ${known[type].join(', ')}`,
    )

  const number = (key: string, radix: 8 | 10, otherwise: number): number => {
    const text = fields.get(key)
    if (text === undefined) return otherwise
    const isNumber = radix === 8 ? /^[0-7]{1,5}$/.test(text) : /^\d{1,5}$/.test(text)
    return isNumber
      ? Number.parseInt(text, radix)
      : refuse(
          at,
          `${key} of --mount must be ${radix === 8 ? 'an octal' : 'a'} number of at most 5 digits`,
          `write for example ${key}=${radix === 8 ? '0755' : '1000'}`,
        )
  }
  if (type === 'secret' || type === 'ssh') {
    if (fields.get('required') === 'true') return refuse(at, noSecrets, noSecretsInstead)
    return { type, id: fields.get('id') ?? posix.basename(fields.get('target') ?? 'default') }
  }
  const path = fields.get('target') ?? ''
  if (path === '' && type !== 'bind')
    return refuse(at, `--mount=type=${type} has no target`, `write --mount=type=${type},target=PATH`)
  const target = posix.resolve('/', workdir, path)
  if (target === '/') return refuse(at, 'nothing can be mounted at /', 'write another target')
  const from = fields.get('from')
  const origin = from === undefined ? {} : { from: originOf(from) }
  const source = posix.resolve('/', fields.get('source') ?? '/')
  if (type === 'tmpfs') return { type, target }
  if (type === 'bind') return { type, target, source, ...origin }
  const id = fields.get('id') ?? target
  return {
    type,
    id,
    target,
    source,
    ...origin,
    mode: number('mode', 8, 0o755),
    uid: number('uid', 10, 0),
    gid: number('gid', 10, 0),
  }
}
