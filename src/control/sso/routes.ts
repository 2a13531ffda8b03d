// The endpoints `/auth/sso`, and the endpoints for SSO links that wait for confirmation. All rules are in sign-in.ts, steps.ts and
// links.ts.

import type { FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { OrganizationId } from '#src/control/people/schemas.ts'
import { originOf } from '../audit/subject.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { createAddressLimit } from '../rate-limits/by-address.ts'
import { SharedCounters } from '../rate-limits/shared-counters.ts'
import { pageForPeople } from '../settings/dashboard-url.ts'
import { findBrowserSecret, keepBrowserSecret } from './browser.ts'
import { type Delivery, delivering, deliverRedirect, deliverSession } from './deliver.ts'
import { confirmLink, listPendingLinks, rejectLink } from './links.ts'
import { BeginQuery, CallbackQuery, LinkId, PendingLink, SessionView } from './schemas.ts'
import { beginSignIn, callbackPath, completeSignIn, type SsoParts } from './sign-in.ts'

const searchOf = ({ url }: FastifyRequest) => (url.includes('?') ? url.slice(url.indexOf('?')) : '')

const mostPerMinute = 60

export const ssoRoutes = (parts: SsoParts): ControlRoute[] => {
  const counters = SharedCounters.of(parts)
  const limitBegin = createAddressLimit(counters, 'SSO sign-ins begun', mostPerMinute)
  const limitCallback = createAddressLimit(counters, 'SSO callbacks', mostPerMinute)
  const { publicUrl } = parts.settings
  const dashboardUrl = pageForPeople(parts.settings)
  const deliveryOf = (request: FastifyRequest, reply: FastifyReply): Delivery => ({
    request,
    reply,
    dashboardUrl,
    publicUrl,
  })
  return [
    route({
      method: 'GET',
      path: '/auth/sso/org/:organizationId',
      needs: 'public',
      summary: 'Redirects a browser to the identity provider of the organization.',
      params: OrganizationId,
      query: BeginQuery,
      replies: { 302: null },
      run: async ({ params, query, request, reply }) => {
        const delivery = deliveryOf(request, reply)
        await delivering(delivery, async () => {
          await limitBegin(request, reply)
          const url = await beginSignIn(parts, {
            organizationId: params.organizationId,
            providerId: query.identityProviderId,
            browserSecret: keepBrowserSecret(request, reply, publicUrl),
            address: request.ip,
          })
          deliverRedirect(delivery, url)
        })
      },
    }),
    route({
      method: 'GET',
      path: callbackPath,
      needs: 'public',
      summary: 'Completes a single sign-on when the identity provider sends the browser back. Returns a session.',
      query: CallbackQuery,
      replies: { 200: SessionView },
      run: async ({ query, request, reply }) => {
        const delivery = deliveryOf(request, reply)
        return await delivering(delivery, async () => {
          await limitCallback(request, reply)
          const browserSecret = findBrowserSecret(request, publicUrl)
          const returned = { state: query.state, search: searchOf(request), browserSecret }
          return deliverSession(delivery, await completeSignIn(parts, returned, originOf(request)))
        })
      },
    }),
    route({
      method: 'GET',
      path: '/users/me/pending-sso-links',
      needs: 'user',
      summary: 'Lists pending links to accounts at identity providers, which the caller can confirm or reject.',
      replies: { 200: Type.Array(PendingLink) },
      run: ({ caller }) => listPendingLinks(parts, caller),
    }),
    route({
      method: 'POST',
      path: '/users/me/pending-sso-links/:id/confirm',
      needs: 'user',
      givesAccess: true,
      summary: 'Confirms a pending link. Whoever signs in with the linked account is then signed in as the caller.',
      params: LinkId,
      replies: { 204: null },
      run: ({ caller, params }) => confirmLink(parts, caller, params.id),
    }),
    route({
      method: 'DELETE',
      path: '/users/me/pending-sso-links/:id',
      needs: 'user',
      summary: 'Rejects a pending link to an account at an identity provider.',
      params: LinkId,
      replies: { 204: null },
      run: ({ caller, params }) => rejectLink(parts, caller, params.id),
    }),
  ]
}
