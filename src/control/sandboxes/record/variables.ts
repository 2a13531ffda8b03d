// The environment variables that a user sets for a sandbox, and the image's variables that the user removes.
import { isDeepStrictEqual } from 'node:util'
import { Problem } from '#src/problems.ts'
import type { VariableChange } from '#src/wire/access.ts'
import type { ColumnValues } from './columns.ts'

export type Variables = Pick<ColumnValues, 'env' | 'unset_env'>

/**
 * Maximum bytes of all names and values. The limit keeps replies to runners small: one reply contains the variables of many
 * sandboxes.
 */
const mapBytes = 64 * 1024
const mostNames = 1000

export const checkMap = (field: 'env' | 'labels', map: Record<string, string>): Record<string, string> => {
  if (Buffer.byteLength(JSON.stringify(map)) <= mapBytes) return map
  throw new Problem('bad_request', `${field} must have at most ${mapBytes} bytes in all`)
}

export const checkEnv = (env: Record<string, string>): Record<string, string> => {
  const wrong = Object.keys(env).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
  if (wrong === undefined) return checkMap('env', env)
  throw new Problem('bad_request', `env has "${wrong.slice(0, 60)}", which is not the name of a variable`)
}

/**
 * Applies `unset` first, then `set`. Removed variables of `inherited` (the image and Alcove) are added to `unset_env`.
 * Returns undefined if nothing changes. Throws 400 if the result is too large.
 */
export const changeVariables = (
  { env, unset_env }: Variables,
  inherited: Readonly<Record<string, string>>,
  { set, unset, unsetValuePrefix = '' }: VariableChange,
): Variables | undefined => {
  checkEnv(set)
  const named = new Set(unset)
  const isRemoved = ([name, value]: [string, string]) =>
    named.has(name) || (unsetValuePrefix !== '' && value.startsWith(unsetValuePrefix) && !Object.hasOwn(set, name))
  const visible = {
    ...Object.fromEntries(Object.entries(inherited).filter(([name]) => !unset_env.includes(name))),
    ...env,
  }
  const removed = new Set(
    Object.entries(visible)
      .filter(isRemoved)
      .map(([name]) => name),
  )
  const own = Object.entries(env).filter(([name]) => !removed.has(name))
  const hidden = [...unset_env, ...[...removed].filter((name) => Object.hasOwn(inherited, name))]
  const changed = {
    env: Object.fromEntries([...own, ...Object.entries(set)]),
    unset_env: [...new Set(hidden)].filter((name) => !Object.hasOwn(set, name)),
  }
  if (isDeepStrictEqual(changed, { env, unset_env })) return undefined
  const count = Object.keys(changed.env).length
  if (count > mostNames) {
    throw new Problem(
      'bad_request',
      `A sandbox has at most ${mostNames} variables of its own, and this would be ${count}.`,
    )
  }
  checkMap('env', changed.env)
  return changed
}
