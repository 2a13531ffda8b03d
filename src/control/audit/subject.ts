// The objects that a write changed: the ids and names in the path of the request, and the id in its answer.
import type { FastifyRequest } from 'fastify'
import type { ControlRoute } from '../auth/route.ts'

export type Subject = { action: string; params: Record<string, string>; targets: string[] }

/** Longest text from a caller in an audit row. Longer texts are cut. */
const longest = 255

/** Cuts a text to `longest` characters, and replaces the characters that PostgreSQL cannot store. */
export const keepable = (text: string): string => text.slice(0, longest).replaceAll('\0', '\uFFFD').toWellFormed()

/** Where a call comes from: the client's address and program, and the id of the request. */
export type Origin = { clientAddress: string; userAgent: string; requestId: string }

export const originOf = ({ ip, headers, id }: FastifyRequest): Origin => ({
  clientAddress: keepable(ip),
  userAgent: keepable(headers['user-agent'] ?? ''),
  requestId: id,
})

/** Whether a path parameter is a secret, by its name. Some paths end with a credential, which must not be stored. */
const isSecret = (name: string) => /(?:token|secret|key)$/i.test(name)

/**
 * Whether a path parameter is an id or a name of an object. Other parameters are settings, such as the interval of
 * autostop.
 */
const isName = (name: string) => /(?:id|name)$/i.test(name)

export const subjectOf = ({ method, path }: Pick<ControlRoute, 'method' | 'path'>, given: unknown): Subject => {
  const params = Object.entries((given ?? {}) as Record<string, string>)
    .filter(([name]) => !isSecret(name))
    .map(([name, value]) => [name, keepable(value)] as const)
  const named = params.filter(([name]) => isName(name))
  // The organization counts as a target only if the path has no other id or name.
  const inside = named.filter(([name]) => name !== 'organizationId')
  return {
    action: `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`,
    params: Object.fromEntries(params),
    targets: [...new Set((inside.length > 0 ? inside : named).map(([, value]) => value))],
  }
}

/** Returns the id of the object that an answer describes. An API key has no id, so its name is returned. */
export const nameInAnswer = (answer: unknown): string | undefined => {
  const { id, name } = (answer ?? {}) as { id?: unknown; name?: unknown }
  const found = [id, name].find((value) => typeof value === 'string')
  return found === undefined ? undefined : keepable(found as string)
}
