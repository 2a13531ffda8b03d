import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { isMoving } from '../../ui/state-badge.tsx'

export type Volume = AnswerTo<'/volumes', 'get'>[number]

/** How often the list of volumes is fetched again while a volume is being removed, in ms. */
const whileMoving = 2000

/** The volumes of the organization, and the calls that make and delete volumes. */
export const useVolumes = (includeDeleted: boolean) => {
  const queries = useQueryClient()
  const organizationId = useOrganizationId()
  const query = useQuery<Volume[]>({
    queryKey: [organizationId, 'volumes', { includeDeleted }],
    refetchInterval: ({ state }) => (state.data?.some((row) => isMoving(row.state)) ? whileMoving : false),
    queryFn: ({ signal }) => answerOf(control.GET('/volumes', { params: { query: { includeDeleted } }, signal })),
  })
  const then = async (call: Promise<unknown>) => {
    await call
    await queries.invalidateQueries({ queryKey: [organizationId, 'volumes'] })
  }
  return {
    query,
    make: (name: string) => then(answerOf(control.POST('/volumes', { body: { name } }))),
    remove: (volumeId: string) =>
      then(answerOf(control.DELETE('/volumes/{volumeId}', { params: { path: { volumeId } } }))),
  }
}
