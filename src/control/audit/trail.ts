// Every write of a user leaves a row in the audit log.
// The row is inserted before the write, and completed with the outcome right after the reply.
import { setImmediate as afterThis } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problemOf } from '#src/http/server.ts'
import type { ActorFields } from '../auth/actor.ts'
import { callerOf } from '../auth/guard.ts'
import type { Caller, ControlRoute } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import type { Sql } from '../storage/database.ts'
import { RefusalBudget } from './refusal-budget.ts'
import { completeEntry, deleteEntry, type Entry, insertEntry } from './store.ts'
import { keepable, nameInAnswer, originOf, type Subject, subjectOf } from './subject.ts'

export type Trail = {
  /**
   * Notes that a call needs an audit row. Call this before the guard checks the call, because refused calls get a row
   * too.
   */
  meet: (request: FastifyRequest, route: ControlRoute) => void
  /** Wraps a route so that its handler changes nothing before the audit row of the call is inserted. */
  follow: (route: ControlRoute) => ControlRoute
  /**
   * Begins to write a call's outcome into the call's audit row. Call this before the answer is sent. If a promise is returned,
   * the answer must wait for it.
   */
  complete: (request: FastifyRequest, reply: FastifyReply) => Promise<void> | undefined
  /** Resolves when the audit rows of all calls that this process has answered so far contain their outcomes. */
  settled: () => Promise<void>
}

/** Calls that insert their audit row in their own transaction. After a rollback, the row is inserted again before the answer. */
export const tellThemselves: ReadonlySet<string> = new Set(['POST /sandbox', 'POST /sandbox/:sandboxIdOrName/fork'])

/** Calls that may read while their audit row is written. Before they change anything, they await `told`. */
export const readFirst: ReadonlySet<string> = new Set([
  'POST /sandbox/:sandboxIdOrName/pause',
  'POST /sandbox/:sandboxIdOrName/start',
])

/**
 * Maximum number of answered calls whose outcome is not written yet. Above this number, an answer waits until its own outcome
 * is written.
 */
const mostOnTheirWay = 100

/** Calls without an audit row: they change nothing themselves. MCP tools call the API, and those calls leave rows. */
const chatter = new Set(['POST /sandbox/:sandboxIdOrName/last-activity', 'POST /mcp', 'DELETE /mcp'])

/** GET routes that make a credential. Their calls leave an audit row, unlike the calls of other GET routes. */
const makesCredential = new Set([
  'GET /object-storage/push-access',
  'GET /sandbox/:sandboxIdOrName/ports/:port/signed-preview-url',
])

const nameOf = ({ method, path }: ControlRoute) => `${method} ${path}`

/**
 * Calls of endpoints with these values in the field `needs` leave no audit row. The callers are programs of Alcove, or have no
 * credential.
 */
const withoutUser: readonly string[] = ['public', 'proxy', 'runner', 'collector']

/** Whether calls of a route leave an audit row: all writes of users do. */
export const leavesRow = (route: ControlRoute): boolean => !withoutUser.includes(route.needs) && isWrite(route)

const isWrite = (route: ControlRoute) =>
  route.method === 'GET' ? makesCredential.has(nameOf(route)) : !chatter.has(nameOf(route))

/**
 * Statuses of answers that leave no audit row. After a 401, the caller is unknown, and a flood of 429 answers would fill the
 * log.
 */
const untold = [401, 429]

type Met = { route: ControlRoute; subject: Subject; organizationId: string | null; id?: number }

export const createTrail = ({ database, clock, log }: Pick<Parts, 'database' | 'clock' | 'log'>): Trail => {
  const { sql } = database.keyed
  const met = new WeakMap<FastifyRequest, Met>()
  const budget = new RefusalBudget(clock, log)
  const onTheirWay = new Set<Promise<void>>()

  const entryOf = (request: FastifyRequest, caller: Caller, { subject, organizationId }: Met): Entry => ({
    at: clock.now(),
    organizationId,
    actorId: caller.user.id,
    actorEmail: caller.user.email,
    ...credentialOf(caller),
    ...originOf(request),
    ...subject,
    status: null,
    code: null,
  })

  const told = async (request: FastifyRequest, status: number) => {
    const found = met.get(request)
    const caller = callerOf(request)
    if (found === undefined || caller === undefined) return
    const isRefused = status >= 400 && status < 500
    const isOver = untold.includes(status) || (isRefused && !budget.takes(caller.user.id))
    const outcome = { status, code: status < 400 ? null : (problemOf(request)?.wireCode ?? null) }
    if (found.id === undefined) found.organizationId = refusedIn(found.route, request, caller)
    else if (isOver) return await deleteEntry(sql, found.id)
    else {
      const { organizationId, subject } = found
      if (await completeEntry(sql, found.id, { organizationId, targets: subject.targets, ...outcome })) return
    }
    if (!isOver) await insertEntry(sql, { ...entryOf(request, caller, found), ...outcome }, 'alone')
  }

  return {
    meet: (request, route) => {
      if (leavesRow(route)) met.set(request, { route, subject: subjectOf(route, request.params), organizationId: null })
    },
    follow: (route) => ({
      ...route,
      run: async (call) => {
        const found = met.get(call.request)
        const caller = callerOf(call.request)
        if (found === undefined || caller === undefined) return await route.run(call)
        found.organizationId = organizationOf(call)
        const tell: Tell = async (on, alone) => {
          found.id = await insertEntry(on, entryOf(call.request, caller, found), alone)
        }
        const answer = await runTold(route, call, tell, sql)
        found.organizationId ??= organizationInAnswer(route, answer)
        const name = nameInAnswer(answer)
        if (name !== undefined && !found.subject.targets.includes(name)) found.subject.targets.push(name)
        return answer
      },
    }),
    complete: (request, reply) => {
      const found = met.get(request)
      if (found === undefined) return undefined
      const status = reply.statusCode
      // The outcome is usually written into the call's audit row after the answer was sent, so that the answer need not
      // wait.
      const completing: Promise<void> = afterThis()
        .then(() => told(request, status))
        .catch((error: unknown) =>
          // The outcome could not be written. The change was made, and its audit row names the caller but not the outcome.
          log.warn({ err: error, requestId: request.id, status }, 'the audit log was not completed'),
        )
        .finally(() => onTheirWay.delete(completing))
      onTheirWay.add(completing)
      // A call has no row yet if its handler never ran or its transaction was rolled back. Control sends the answer to such a
      // call only after the row is inserted, so that audit rows have the order of the answers.
      const hasRow = found.id !== undefined && !(status >= 400 && tellThemselves.has(nameOf(found.route)))
      return !hasRow || onTheirWay.size > mostOnTheirWay ? completing : undefined
    },
    settled: async () => {
      await Promise.all(onTheirWay)
    },
  }
}

type Tell = (sql: Sql, alone?: 'alone') => Promise<void>

/**
 * Runs the handler of a route, usually after its audit row was inserted. The set `tellThemselves` names routes whose handlers
 * insert the row. The set `readFirst` names routes whose handlers run during the insert. Before these handlers change anything,
 * they await the promise `told`, the end of the insert.
 */
const runTold = async (
  route: ControlRoute,
  call: Parameters<ControlRoute['run']>[0],
  tell: Tell,
  sql: Sql,
): Promise<unknown> => {
  const run = (told: ActorFields) => route.run({ ...call, ...told } as typeof call & ActorFields)
  if (tellThemselves.has(nameOf(route))) return await run({ tellIn: tell })
  const telling = tell(sql, 'alone')
  if (!readFirst.has(nameOf(route))) {
    await telling
    return await run({})
  }
  // The insert may fail before the handler awaits `told`. Without this empty `catch`, Node would then end the process. The
  // `await` in the `finally` block still throws the error.
  telling.catch(() => {})
  try {
    return await run({ told: telling })
  } finally {
    await telling
  }
}

/** Returns the kind of credential for the audit row. A caller without an API key is signed in with a JWT. */
const credentialOf = ({ keyName }: Partial<Caller>) => ({
  credential: keyName === undefined ? 'jwt' : 'api_key',
  keyName: keyName ?? null,
})

/** Returns the organization for the audit row: the caller's organization, or the organization in the path of an operator's call. */
const organizationOf = (call: object): string | null => {
  const { organization, params } = call as { organization?: { id: string }; params?: { organizationId?: string } }
  const id = organization?.id ?? params?.organizationId
  return id === undefined ? null : keepable(id)
}

/**
 * Returns the organization for the audit row of a refused call. If the organization is null, only the operator can read the
 * row.
 */
const refusedIn = ({ needs }: ControlRoute, request: FastifyRequest, caller: Caller): string | null => {
  const own = caller.organization.id
  const inPath = (request.params as { organizationId?: string } | undefined)?.organizationId
  if (inPath !== undefined) return inPath === own ? own : null
  return needs === 'user' || needs === 'admin' ? null : own
}

/**
 * Returns the organization that the answer of a call names. The audit row gets this organization if none was known before the
 * call, for example when a user accepts an invitation.
 */
const organizationInAnswer = ({ path }: ControlRoute, answer: unknown): string | null => {
  const { id, organizationId } = (answer ?? {}) as { id?: string; organizationId?: string }
  return organizationId ?? (path === '/organizations' ? (id ?? null) : null)
}
