import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, type BodyOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type Registry = AnswerTo<'/docker-registry', 'get'>[number]
export type RegistryBody = BodyOf<'/docker-registry', 'post'>

const pathOf = (id: string) => ({ params: { path: { id } } })

/** The credentials that the organization has for container registries, and the calls that add, change and remove them. */
export const useRegistries = () => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const queryKey = [organizationId, 'registries']
  const query = useQuery<Registry[]>({
    queryKey,
    queryFn: ({ signal }) => answerOf(control.GET('/docker-registry', { signal })),
  })
  const then = async (call: Promise<unknown>) => {
    await call
    await queries.invalidateQueries({ queryKey })
  }
  return {
    query,
    add: (body: RegistryBody) => then(answerOf(control.POST('/docker-registry', { body }))),
    change: (id: string, body: Partial<RegistryBody>) =>
      then(answerOf(control.PATCH('/docker-registry/{id}', { ...pathOf(id), body }))),
    remove: (id: string) => then(answerOf(control.DELETE('/docker-registry/{id}', pathOf(id)))),
  }
}
