import { useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'
import { isMoving } from '../../ui/state-badge.tsx'

/** How often a sandbox that changes its state is asked how far it is, in ms. Its progress has no events. */
const progressMilliseconds = 2000

/**
 * One sandbox, kept up to date by the events of its state. `restMilliseconds`: how often it is asked for also at rest, by
 * pages that show what has no events.
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
