import { useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { isMoving } from '../../ui/state-badge.tsx'

/** How often a sandbox is fetched again while it changes its state, in ms. The server sends no events about progress. */
const progressMilliseconds = 2000

/**
 * Fetches one sandbox. Events of the server update its state, but some fields change without an event. A page that shows such
 * fields sets `restMilliseconds`: the interval in ms at which the sandbox is fetched again while it does not change its state.
 */
export const useSandbox = (idOrName: string, restMilliseconds?: number) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'sandbox', idOrName],
    queryFn: ({ signal }) =>
      answerOf(
        control.GET('/sandbox/{sandboxIdOrName}', { params: { path: { sandboxIdOrName: idOrName } } as never, signal }),
      ),
    refetchInterval: ({ state: { data } }) => {
      if (data === undefined) return false
      return isMoving(data.state) ? progressMilliseconds : (restMilliseconds ?? false)
    },
  })
}
