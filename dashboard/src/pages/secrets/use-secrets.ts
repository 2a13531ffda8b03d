import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, type BodyOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type Secret = AnswerTo<'/secret/paginated', 'get'>['items'][number]
type SecretsPage = AnswerTo<'/secret/paginated', 'get'>
export type SecretBody = BodyOf<'/secret', 'post'>
export type SecretChange = Omit<BodyOf<'/secret/{secretId}', 'patch'> & {}, 'name'>

const rowsPerCall = 100
const pathOf = (secretId: string) => ({ params: { path: { secretId } } })

/** The secrets whose name contains `name`, and the calls that make, change and delete secrets. */
export const useSecrets = (name: string) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const query = useInfiniteQuery({
    queryKey: [organizationId, 'secrets', name],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }): Promise<SecretsPage> => {
      const cursor = pageParam === undefined ? {} : { cursor: pageParam }
      const filter = name === '' ? {} : { name }
      return answerOf(
        control.GET('/secret/paginated', { params: { query: { limit: rowsPerCall, ...filter, ...cursor } }, signal }),
      )
    },
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  })
  const then = async (call: Promise<unknown>) => {
    await call
    await queries.invalidateQueries({ queryKey: [organizationId, 'secrets'] })
  }
  return {
    query: { ...query, data: query.data?.pages.flatMap(({ items }) => items) },
    make: (body: SecretBody) => then(answerOf(control.POST('/secret', { body }))),
    change: (id: string, body: SecretChange) =>
      then(answerOf(control.PATCH('/secret/{secretId}', { ...pathOf(id), body }))),
    remove: (id: string) => then(answerOf(control.DELETE('/secret/{secretId}', pathOf(id)))),
  }
}
