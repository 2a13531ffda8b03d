import { useQuery } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../api/client.ts'
import { useOrganizationId } from '../session/use-session.ts'

export type Role = AnswerTo<'/organizations/{organizationId}/roles', 'get'>[number]

/** The id of the role that a new member gets if no other role is chosen. */
export const developerRoleId = '00000000-0000-0000-0000-000000000001'

/** The global roles and the organization's own roles. */
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
