import { useQuery } from '@tanstack/react-query'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'

/** The server lists at most this many forks of one sandbox. */
export const mostForks = 100

const pathOf = (sandboxId: string) => ({ path: { sandboxIdOrName: sandboxId } })

/** What is needed to draw a member of a family. Events keep lists under the key `family` up to date (live/events.ts). */
export type Member = Pick<Sandbox, 'id' | 'name' | 'state' | 'createdAt'>

/** The sandboxes that this one descends from and that still exist, the first of all first. */
export const useAncestors = (sandboxId: string) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'family', sandboxId, 'ancestors'],
    queryFn: async ({ signal }): Promise<Member[]> =>
      await answerOf(
        control.GET('/sandbox/{sandboxIdOrName}/ancestors', { params: pathOf(sandboxId), signal } as never),
      ),
  })
}

/** The forks of a sandbox, the newest first. */
export const useForks = (sandboxId: string, isWanted: boolean) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'family', sandboxId, 'forks'],
    enabled: isWanted,
    queryFn: async ({ signal }): Promise<Member[]> =>
      await answerOf(control.GET('/sandbox/{sandboxIdOrName}/forks', { params: pathOf(sandboxId), signal } as never)),
  })
}
