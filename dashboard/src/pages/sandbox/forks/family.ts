import { useQuery } from '@tanstack/react-query'
import { answerOf, control, type Sandbox } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'

/** The server lists at most this many forks of one sandbox. */
export const mostForks = 100

const pathOf = (sandboxId: string) => ({ path: { sandboxIdOrName: sandboxId } })

/** The shown fields of a fork or an ancestor. live/events.ts updates them in all cached queries whose key contains `family`. */
export type Member = Pick<Sandbox, 'id' | 'name' | 'state' | 'createdAt'>

/** Loads the ancestors of a fork: its parent, the parent's parent, and so on. Oldest first, without deleted sandboxes. */
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

/** The forks of a sandbox, with the newest fork first. */
export const useForks = (sandboxId: string, isWanted: boolean) => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'family', sandboxId, 'forks'],
    enabled: isWanted,
    queryFn: async ({ signal }): Promise<Member[]> =>
      await answerOf(control.GET('/sandbox/{sandboxIdOrName}/forks', { params: pathOf(sandboxId), signal } as never)),
  })
}
