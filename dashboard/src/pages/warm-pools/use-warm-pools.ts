import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type WarmPool = AnswerTo<'/warm-pools', 'get'>[number]

/** How often the list of warm pools is fetched again while a warm pool has too few or too many sandboxes, in ms. */
const whileMoving = 3000

const pathOf = (warmPoolId: string) => ({ params: { path: { warmPoolId } } })

/** The warm pools of the organization, and the calls that make, change and delete them. */
export const useWarmPools = () => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const queryKey = [organizationId, 'warm-pools']
  const query = useQuery<WarmPool[]>({
    queryKey,
    refetchInterval: ({ state }) =>
      state.data?.some(({ pool, currentSize }) => pool !== currentSize) ? whileMoving : false,
    queryFn: ({ signal }) => answerOf(control.GET('/warm-pools', { signal })),
  })
  const then = async (call: Promise<unknown>) => {
    await call
    await queries.invalidateQueries({ queryKey })
  }
  return {
    query,
    make: (body: { snapshot: string; pool: number; target?: string }) =>
      then(answerOf(control.POST('/warm-pools', { body }))),
    setNumber: (id: string, pool: number) =>
      then(answerOf(control.PATCH('/warm-pools/{warmPoolId}', { ...pathOf(id), body: { pool } }))),
    remove: (id: string) => then(answerOf(control.DELETE('/warm-pools/{warmPoolId}', pathOf(id)))),
  }
}
