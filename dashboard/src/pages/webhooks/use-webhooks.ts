import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, type BodyOf, control } from '../../api/client.ts'
import { ApiProblem } from '../../api/problem.ts'
import { useOrganizationId } from '../../session/use-session.ts'

const base = '/webhooks/organizations/{organizationId}'
export type Endpoint = AnswerTo<`${typeof base}/endpoints`, 'get'>[number]
export type EndpointBody = BodyOf<`${typeof base}/endpoints`, 'post'>
export type EndpointChange = BodyOf<`${typeof base}/endpoints/{endpointId}`, 'patch'>
type Secret = AnswerTo<`${typeof base}/endpoints/{endpointId}/rotate-secret`, 'post'>
type PortalAccess = AnswerTo<`${typeof base}/app-portal-access`, 'post'>
export type WebhookStatus = AnswerTo<`${typeof base}/initialization-status`, 'get'>

/**
 * The status of the organization's webhooks. Null until webhooks are initialized for the organization. That happens when the
 * organization adds its first endpoint.
 */
export const useWebhookStatus = () => {
  const organizationId = useOrganizationId()
  return useQuery<WebhookStatus | null>({
    queryKey: [organizationId, 'webhooks', 'status'],
    queryFn: ({ signal }) =>
      answerOf(control.GET(`${base}/initialization-status`, { params: { path: { organizationId } }, signal })).catch(
        (error: unknown) => {
          if (error instanceof ApiProblem && error.status === 404) return null
          throw error
        },
      ),
  })
}

/** The webhook endpoints of the organization, and the calls that add, change, test and delete them. */
export const useWebhooks = () => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const pathOf = (endpointId: string) => ({ params: { path: { organizationId, endpointId } } })
  const here = { params: { path: { organizationId } } }
  const query = useQuery<Endpoint[]>({
    queryKey: [organizationId, 'webhooks', 'endpoints'],
    queryFn: ({ signal }) => answerOf(control.GET(`${base}/endpoints`, { ...here, signal })),
  })
  const then = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call
    await queries.invalidateQueries({ queryKey: [organizationId, 'webhooks'] })
    return answer
  }
  return {
    query,
    add: (body: EndpointBody) => then(answerOf(control.POST(`${base}/endpoints`, { ...here, body }))),
    change: (id: string, body: EndpointChange) =>
      then(answerOf(control.PATCH(`${base}/endpoints/{endpointId}`, { ...pathOf(id), body }))),
    remove: (id: string) => then(answerOf(control.DELETE(`${base}/endpoints/{endpointId}`, pathOf(id)))),
    rotate: (id: string): Promise<Secret> =>
      then(answerOf(control.POST(`${base}/endpoints/{endpointId}/rotate-secret`, pathOf(id) as never))),
    initialize: () => then(answerOf(control.POST(`${base}/initialize`, here as never))),
    openPortal: (): Promise<PortalAccess> => answerOf(control.POST(`${base}/app-portal-access`, here as never)),
    resend: (endpointId: string, messageId: string) =>
      then(
        answerOf(
          control.POST(`${base}/endpoints/{endpointId}/messages/{messageId}/resend`, {
            params: { path: { organizationId, endpointId, messageId } },
          } as never),
        ),
      ),
  }
}
