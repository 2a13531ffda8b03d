import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../../api/client.ts'
import { useOrganizationId } from '../../session/use-session.ts'

export type Role = AnswerTo<'/organizations/{organizationId}/roles', 'get'>[number]
export type Invitation = AnswerTo<'/organizations/{organizationId}/invitations', 'get'>[number]

/** The role that members have if nobody chooses another one. */
export const developerRoleId = '00000000-0000-0000-0000-000000000001'

/** The global roles and those of the organization. */
export const useRoles = () => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'roles'],
    queryFn: () =>
      answerOf(
        control.GET('/organizations/{organizationId}/roles', { params: { path: { organizationId } } } as never),
      ) as Promise<Role[]>,
  })
}

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

/** Returns a function that fetches anew what a change of members, roles or invitations may have changed. */
export const usePeopleChanged = () => {
  const organizationId = useOrganizationId()
  const queries = useQueryClient()
  return () => {
    for (const thing of ['members', 'roles', 'invitations', 'keys'])
      void queries.invalidateQueries({ queryKey: [organizationId, thing] })
  }
}
