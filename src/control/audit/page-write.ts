// Writes that come from a page of ours and by none of the rows of endpoints.ts: told of as those are, before and after.
import type { FastifyRequest } from 'fastify'
import { asProblem } from '#src/http/render-problem.ts'
import type { Parts } from '../parts.ts'
import type { Transaction } from '../storage/database.ts'
import { completeEntry, insertEntry } from './store.ts'
import { type Origin, originOf } from './subject.ts'

type PageWrite = {
  organizationId: string
  user: { id: string; email: string }
  /** The row of endpoints.ts that does the same. */
  action: string
  /** Ids that were checked. */
  params: Record<string, string>
}

/** Runs `work` once its row is there. How it ended stands there too when this settles, so answer only then. */
export const tellOfPageWrite = async <T>(
  { database, clock, log }: Pick<Parts, 'database' | 'clock' | 'log'>,
  request: FastifyRequest,
  { organizationId, user, action, params }: PageWrite,
  work: () => Promise<T>,
): Promise<T> => {
  const { sql } = database
  const targets = Object.values(params)
  const id = await insertEntry(sql, {
    at: clock.now(),
    organizationId,
    actorId: user.id,
    actorEmail: user.email,
    credential: 'portal',
    keyName: null,
    ...originOf(request),
    action,
    params,
    targets,
    status: null,
    code: null,
  })
  const complete = (status: number, code: string | null) =>
    completeEntry(sql, id, { organizationId, targets, status, code }).catch((error: unknown) => {
      log.warn({ err: error, requestId: request.id, status }, 'the audit log was not completed')
    })
  try {
    const done = await work()
    await complete(200, null)
    return done
  } catch (error) {
    const problem = asProblem(error)
    await complete(problem.status, problem.wireCode)
    throw error
  }
}

type SsoJoining = {
  at: Date
  organizationId: string
  user: PageWrite['user']
  providerId: string
  from: Origin
}

/** That somebody has become a member by signing in, in the transaction that makes them one: there is no caller before. */
export const tellOfSsoJoining = async (
  sql: Transaction,
  { at, organizationId, user, providerId, from }: SsoJoining,
): Promise<void> => {
  await insertEntry(sql, {
    at,
    organizationId,
    actorId: user.id,
    actorEmail: user.email,
    credential: 'sso',
    keyName: null,
    ...from,
    action: 'GET /auth/sso/callback',
    params: {},
    targets: [providerId, user.id],
    status: 200,
    code: null,
  })
}
