import { useQuery } from '@tanstack/react-query'
import { answerOf, control } from '../../../api/client.ts'
import { useOrganizationId } from '../../../session/use-session.ts'

/** Returns a function that turns a user id into the member's name, or into "you" for the user of this page. */
export const usePeople = (): ((userId: string) => string | undefined) => {
  const organizationId = useOrganizationId()
  const { data: me } = useQuery({ queryKey: ['me'], queryFn: () => answerOf(control.GET('/users/me')) })
  const { data: members } = useQuery({
    queryKey: [organizationId, 'members', 'names'],
    queryFn: ({ signal }) =>
      answerOf(
        control.GET('/organizations/{organizationId}/users', { params: { path: { organizationId } } as never, signal }),
      ),
  })
  return (userId) => {
    if (userId === me?.id) return 'you'
    const found = members?.find((member) => member.userId === userId)
    return found && (found.name || found.email)
  }
}
