import { useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, type BodyOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type NewRegion = AnswerTo<'/regions', 'post'>
export type RegionBody = BodyOf<'/regions', 'post'>
export type RegionChange = BodyOf<'/regions/{id}', 'patch'>

/** The services in a region. Each of these services has a credential. */
export type RegionService = 'proxy' | 'ssh-gateway' | 'snapshot-manager'

/** A credential that is shown only once. `what` is the description that the user sees. */
export type Credential = { what: string; value: string }

const pathOf = (id: string) => ({ params: { path: { id } } })

/** The credentials in the server's answer to a call that made a region. */
export const credentialsOf = (made: NewRegion): Credential[] =>
  [
    { what: 'the key of the proxy', value: made.proxyApiKey },
    { what: 'the key of the SSH gateway', value: made.sshGatewayApiKey },
    { what: 'the user of the snapshot manager', value: made.snapshotManagerUsername },
    { what: 'the password of the snapshot manager', value: made.snapshotManagerPassword },
  ].filter((each): each is Credential => each.value !== null)

/** The calls that make, change and delete regions of the organization. */
export const useOwnRegions = () => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const then = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call
    await queries.invalidateQueries({ queryKey: [organizationId, 'regions'] })
    return answer
  }
  const renew = async (id: string, service: RegionService): Promise<Credential[]> => {
    if (service === 'snapshot-manager') {
      const path = '/regions/{id}/regenerate-snapshot-manager-credentials'
      const made: AnswerTo<typeof path, 'post'> = await answerOf(control.POST(path, pathOf(id) as never))
      return [
        { what: 'the user of the snapshot manager', value: made.username },
        { what: 'the password of the snapshot manager', value: made.password },
      ]
    }
    const path =
      service === 'proxy' ? '/regions/{id}/regenerate-proxy-api-key' : '/regions/{id}/regenerate-ssh-gateway-api-key'
    const { apiKey }: { apiKey: string } = await answerOf(control.POST(path, pathOf(id) as never))
    return [{ what: service === 'proxy' ? 'the key of the proxy' : 'the key of the SSH gateway', value: apiKey }]
  }
  return {
    make: (body: RegionBody) => then(answerOf(control.POST('/regions', { body }))),
    change: (id: string, body: RegionChange) => then(answerOf(control.PATCH('/regions/{id}', { ...pathOf(id), body }))),
    remove: (id: string) => then(answerOf(control.DELETE('/regions/{id}', pathOf(id)))),
    renew,
  }
}
