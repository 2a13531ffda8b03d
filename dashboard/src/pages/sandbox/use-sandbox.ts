import { useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { isMoving } from '../../ui/state-badge.tsx'

/** How often a sandbox is fetched again while it changes its state, in ms. The server sends no events about progress. */
const progressMilliseconds = 2000

/**
 * Fetches one sandbox. Events update its state, but some fields change without an event. So a sandbox at rest is fetched again
 * every `restMilliseconds`.
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
