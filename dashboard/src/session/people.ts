// Who is signed in, who else is a member of the organization, and what the signed-in user may do in it.
import { useQuery } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../api/client.ts'
import type { Permission } from '../permissions/permissions.ts'
import { useOrganizationId } from './use-session.ts'

export type Me = AnswerTo<'/users/me', 'get'>
export type Member = AnswerTo<'/organizations/{organizationId}/users', 'get'>[number]
export type Organization = AnswerTo<'/organizations', 'get'>[number]

export const useMe = () => useQuery({ queryKey: ['me'], queryFn: () => answerOf(control.GET('/users/me')) })

export const useOrganization = (): Organization | undefined => {
  const organizationId = useOrganizationId()
  const { data } = useQuery({ queryKey: ['organizations'], queryFn: () => answerOf(control.GET('/organizations')) })
  return data?.find(({ id }) => id === organizationId)
}

/** The members of the organization. The server sends at most 5,000, all in one answer. */
export const useMembers = () => {
  const organizationId = useOrganizationId()
  return useQuery({
    queryKey: [organizationId, 'members'],
    queryFn: () =>
      answerOf(
        control.GET('/organizations/{organizationId}/users', { params: { path: { organizationId } } } as never),
      ) as Promise<Member[]>,
  })
}

export type Standing = {
  userId: string
  isOwner: boolean
  /** Whether the user has a permission through a role. An owner has all permissions. */
  holds: (permission: Permission) => boolean
}

/**
 * What the user may do in the organization; undefined until it is fetched. Only decides what pages offer: the server checks each
 * call.
 */
export const useStanding = (): Standing | undefined => {
  const me = useMe().data
  const member = useMembers().data?.find(({ userId }) => userId === me?.id)
  if (me === undefined || member === undefined) return undefined
  const held = new Set(member.assignedRoles.flatMap(({ permissions }) => permissions))
  const isOwner = member.role === 'owner'
  return { userId: me.id, isOwner, holds: (permission) => isOwner || held.has(permission) }
}

/** Whether the user is an operator of this server. To find out, the page makes a call that only operators may make. */
export const useIsOperator = (): boolean => {
  const me = useMe().data
  const { data = false } = useQuery({
    queryKey: ['operator', me?.id],
    enabled: me !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const { response } = await control.GET('/audit', { params: { query: { limit: 1 } } } as never)
      return response.ok
    },
  })
  return data
}
