// Serves the portal: web pages on which an organization manages its webhook endpoints, if control itself sends the webhooks. A
// browser that opens a portal link, which an API call returns, gets a cookie. These pages are not part of the API, so
// `src/control/endpoints.ts` does not list them.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { tellOfPageWrite } from '#src/control/audit/page-write.ts'
import { asProblem } from '#src/http/render-problem.ts'
import { Problem } from '#src/problems.ts'
import { listAttempts } from '../endpoint-store.ts'
import {
  changeEndpoint,
  createEndpoint,
  getEndpoint,
  removeEndpoint,
  resend,
  rotateSecret,
  viewEndpoints,
} from '../endpoints.ts'
import { isWebhookEvent, type WebhookEvent } from '../event.ts'
import type { WebhookParts } from '../parts.ts'
import { contentSecurityPolicy, endpointPage, listPage, messagePage, secretNote } from './pages.ts'
import { cookieName, cookieOf, exchangeLink, findSession, isFormWord, portalPath, type Session } from './tokens.ts'

const formBytes = 16 * 1024
const attemptsShown = 50
const apiPath = '/webhooks/organizations/{organizationId}/endpoints'

const send = (reply: FastifyReply, status: number, page: string) =>
  reply.status(status).type('text/html; charset=utf-8').send(page)

const readCookie = (request: FastifyRequest): string =>
  (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .find(([name]) => name === cookieName)?.[1] ?? ''

const fieldsOf = (form: URLSearchParams): { url: string; description: string; events: WebhookEvent[] } => {
  const text = (name: string) => {
    const value = form.get(name) ?? ''
    if (value.includes('\0') || !value.isWellFormed())
      throw new Problem('bad_request', `${name} contains characters that are not allowed`)
    return value
  }
  return { url: text('url'), description: text('description'), events: form.getAll('events').filter(isWebhookEvent) }
}

/** Reads the ids of an endpoint and of a message from the path. A missing id is empty. Throws 404 for a malformed id. */
const readIds = (request: FastifyRequest): { id: string; messageId: string } => {
  const { id = '', messageId = '' } = request.params as { id?: string; messageId?: string }
  if (!/^(?:ep_[0-9a-f]{24})?$/.test(id) || !/^(?:msg_[0-9a-f]{32})?$/.test(messageId)) {
    throw new Problem('not_found', 'This page does not exist.')
  }
  return { id, messageId }
}

/** Adds the routes of the portal page. Call before the server listens. */
export const servePortal = async (server: FastifyInstance, parts: WebhookParts): Promise<void> => {
  const { database, settings } = parts

  const getSession = async (request: FastifyRequest): Promise<Session> => {
    const session = await findSession(parts, readCookie(request))
    if (session === undefined)
      throw new Problem('unauthorized', 'This link has been used or is too old. Ask for a new one.')
    return session
  }

  /** Reads a form. Throws 403 if the form was not sent by a portal page of this session, to prevent CSRF. */
  const getForm = async (request: FastifyRequest) => {
    const session = await getSession(request)
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
    const site = request.headers['sec-fetch-site']
    const isOurs = site === undefined || site === 'same-origin'
    if (!isOurs || !isFormWord(session, form.get('form') ?? ''))
      throw new Problem('forbidden', 'This form did not come from this page. Open the page again.')
    return { session, form }
  }

  const renderEndpoint = async (session: Session, id: string, secret?: string): Promise<string> => {
    const endpoint = await getEndpoint(parts, session.organizationId, id)
    const attempts = await listAttempts(database.sql, id, { before: undefined, limit: attemptsShown })
    return endpointPage(session, endpoint, attempts, secret ? secretNote(secret) : undefined)
  }

  type Form = {
    reply: FastifyReply
    session: Session
    organizationId: string
    id: string
    messageId: string
    form: URLSearchParams
  }

  /**
   * `action`: the API call that makes the same change, for the audit log. `run` makes the change, and returns a function that sends
   * the reply after the audit row is written.
   */
  const forms: { path: string; action: string; run: (form: Form) => Promise<() => FastifyReply> }[] = [
    {
      path: '/endpoints',
      action: `POST ${apiPath}`,
      run: async ({ reply, session, organizationId, form }) => {
        const organization = { id: organizationId, name: session.organizationName }
        const { endpoint, secret } = await createEndpoint(parts, organization, fieldsOf(form))
        const page = await renderEndpoint(session, endpoint.id, secret)
        return () => send(reply, 200, page)
      },
    },
    {
      path: '/endpoints/:id',
      action: `PATCH ${apiPath}/{endpointId}`,
      run: async ({ reply, organizationId, id, form }) => {
        await changeEndpoint(parts, organizationId, id, fieldsOf(form))
        return () => reply.redirect(`${portalPath}/endpoints/${id}`, 303)
      },
    },
    ...(['enable', 'disable'] as const).map((name) => ({
      path: `/endpoints/:id/${name}`,
      action: `PATCH ${apiPath}/{endpointId}`,
      run: async ({ reply, organizationId, id }: Form) => {
        await changeEndpoint(parts, organizationId, id, { disabled: name === 'disable' })
        return () => reply.redirect(`${portalPath}/endpoints/${id}`, 303)
      },
    })),
    {
      path: '/endpoints/:id/delete',
      action: `DELETE ${apiPath}/{endpointId}`,
      run: async ({ reply, organizationId, id }) => {
        await removeEndpoint(parts, organizationId, id)
        return () => reply.redirect(portalPath, 303)
      },
    },
    {
      path: '/endpoints/:id/rotate',
      action: `POST ${apiPath}/{endpointId}/rotate-secret`,
      run: async ({ reply, session, organizationId, id }) => {
        const secret = await rotateSecret(parts, organizationId, id)
        const page = await renderEndpoint(session, id, secret)
        return () => send(reply, 200, page)
      },
    },
    {
      path: '/endpoints/:id/resend/:messageId',
      action: `POST ${apiPath}/{endpointId}/messages/{messageId}/resend`,
      run: async ({ reply, organizationId, id, messageId }) => {
        await resend(parts, organizationId, id, messageId)
        return () => reply.redirect(`${portalPath}/endpoints/${id}`, 303)
      },
    },
  ]

  await server.register(
    async (scope) => {
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser(
        'application/x-www-form-urlencoded',
        { parseAs: 'string', bodyLimit: formBytes },
        (_request, text, done) => done(null, new URLSearchParams(text as string)),
      )
      scope.addHook('onSend', async (_request, reply) => {
        reply.headers({
          'content-security-policy': contentSecurityPolicy,
          'cache-control': 'no-store',
          'referrer-policy': 'same-origin',
          'x-content-type-options': 'nosniff',
        })
      })
      scope.setErrorHandler((error, request, reply) => {
        const problem = asProblem(error)
        if (problem.status >= 500) request.log.error({ reqId: request.id, err: error }, 'the webhook portal failed')
        return send(reply, problem.status, messagePage('This did not work', problem.message))
      })

      scope.get('/', async (request, reply) => {
        const { token } = request.query as Record<string, unknown>
        if (typeof token === 'string') {
          const session = await exchangeLink(parts, token)
          if (session === undefined)
            throw new Problem('unauthorized', 'This link has been used or is too old. Ask for a new one.')
          // The redirect keeps the token out of the browser's history and of the header Referer.
          return reply.header('set-cookie', cookieOf(session, settings.publicUrl)).redirect(portalPath, 303)
        }
        const session = await getSession(request)
        return send(reply, 200, listPage(session, await viewEndpoints(parts, session.organizationId)))
      })
      scope.get('/endpoints/:id', async (request, reply) => {
        const session = await getSession(request)
        return send(reply, 200, await renderEndpoint(session, readIds(request).id))
      })
      for (const { path, action, run } of forms) {
        scope.post(path, async (request, reply) => {
          const { session, form } = await getForm(request)
          const { organizationId } = session
          const { id, messageId } = readIds(request)
          const params = { ...(id && { endpointId: id }), ...(messageId && { messageId }) }
          const user = { id: session.userId, email: session.userEmail }
          const answer = await tellOfPageWrite(parts, request, { organizationId, user, action, params }, () =>
            run({ reply, session, organizationId, id, messageId, form }),
          )
          return answer()
        })
      }
    },
    { prefix: portalPath },
  )
}
