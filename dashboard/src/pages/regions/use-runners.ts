import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'

export type Runner = AnswerTo<'/runners', 'get'>[number]
export type NewRunner = AnswerTo<'/runners', 'post'>

/** How often the runners are fetched again while they are shown, in ms. The server sends no events about runners. */
const lookEvery = 15_000

const pathOf = (runnerId: string) => ({ path: { runnerId } })

/** The runners of the server, and the calls with which an operator changes them. */
export const useRunners = () => {
  const queries = useQueryClient()
  const queryKey = ['runners']
  const query = useQuery<Runner[]>({
    queryKey,
    refetchInterval: ({ state }) => (state.error === null ? lookEvery : false),
    queryFn: ({ signal }) => answerOf(control.GET('/runners', { signal })),
  })
  const then = async <T>(call: Promise<T>): Promise<T> => {
    const answer = await call
    await queries.invalidateQueries({ queryKey })
    return answer
  }
  return {
    query,
    add: (name: string, regionId: string): Promise<NewRunner> =>
      then(answerOf(control.POST('/runners', { body: { name, ...(regionId !== '' && { regionId }) } }))),
    setDrained: (id: string, unschedulable: boolean) =>
      then(answerOf(control.PATCH('/runners/{runnerId}/scheduling', { params: pathOf(id), body: { unschedulable } }))),
    remove: (id: string, force: boolean) =>
      then(answerOf(control.DELETE('/runners/{runnerId}', { params: { ...pathOf(id), query: { force } } }))),
  }
}
