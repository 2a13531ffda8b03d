import { useQuery } from '@tanstack/react-query'
import { type AnswerTo, answerOf, control } from '../api/client.ts'

export type Invitation = AnswerTo<'/organizations/invitations', 'get'>[number]

/** The invitations to this user that can still be accepted. */
export const useOwnInvitations = () =>
  useQuery({
    queryKey: ['own-invitations'],
    staleTime: 60_000,
    queryFn: () => answerOf(control.GET('/organizations/invitations')),
  })
