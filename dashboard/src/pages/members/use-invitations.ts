import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type Invitation = AnswerTo<'/organizations/{organizationId}/invitations', 'get'>[number]

/** The invitations of the organization that can still be accepted. */
export const useInvitations = () => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'invitations'],
    queryFn: () =>
      answerOf(
        control.GET('/organizations/{organizationId}/invitations', { params: { path: { organizationId } } } as never),
      ) as Promise<Invitation[]>,
  })
}

/**
 * Returns a function that fetches the lists of members, roles and invitations again. Must be called after one of them was
 * changed.
 */
export const usePeopleChanged = () => {
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  return () => {
    for (const thing of ['members', 'roles', 'invitations', 'keys'])
      void queries.invalidateQueries({ queryKey: [organizationId, thing] })
  }
}
