// Audit rows for changes that users make on web pages of control. These pages are no endpoints of the API.
// A row is inserted before the change and completed after it.
import type { FastifyRequest } from 'fastify'
import { asProblem } from '#src/http/render-problem.ts'
import type { Parts } from '../parts.ts'
import type { Transaction } from '../storage/database.ts'
import { completeEntry, insertEntry } from './store.ts'
import { type Origin, originOf } from './subject.ts'

type PageWrite = {
  organizationId: string
  user: { id: string; email: string }
  /** The action in the audit row. It is the action of the API endpoint that makes the same change as the web page. */
  action: string
  /** Parameters for the audit row. They are ids that the calling function has verified. */
  params: Record<string, string>
}

/**
 * Inserts an audit row, and then runs `work`. Await the returned promise before you send the answer: the row then contains the
 * outcome.
 */
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

/**
 * Writes the audit row of a user who became a member by single sign-on. Uses the transaction of the sign-in, because that
 * transaction may have created the user.
 */
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

type LinkSignIn = { at: Date; user: PageWrite['user']; from: Origin }

/** Writes the audit row of a sign-in with a one-time link, in the transaction that marks the link as used. */
export const tellOfLinkSignIn = async (sql: Transaction, { at, user, from }: LinkSignIn): Promise<void> => {
  await insertEntry(sql, {
    at,
    organizationId: null,
    actorId: user.id,
    actorEmail: user.email,
    credential: 'link',
    keyName: null,
    ...from,
    action: 'GET /oidc/interaction',
    params: {},
    targets: [user.id],
    status: 200,
    code: null,
  })
}
