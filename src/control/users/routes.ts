// The endpoints of `/users`, which all act on the calling user.
import Type from 'typebox'
import { asUserView } from '#src/control/people/user.ts'
import { Problem } from '#src/problems.ts'
import { type ControlRoute, route } from '../auth/route.ts'
import { linkAccount, listAccountProviders, type UserParts, unlinkAccount } from './linked-accounts.ts'
import { AccountProvider, CreateLinkedAccount, LinkedAccount, User } from './schemas.ts'

export const userRoutes = (parts: UserParts): ControlRoute[] => [
  route({
    method: 'GET',
    path: '/users/me',
    needs: 'user',
    summary: 'The user that the credential belongs to.',
    replies: { 200: User },
    run: ({ user }) => asUserView(user),
  }),
  route({
    method: 'GET',
    path: '/users/account-providers',
    needs: 'user',
    summary: 'Who can sign in people here, and by whom the caller can sign in.',
    replies: { 200: Type.Array(AccountProvider) },
    run: ({ user }) => listAccountProviders(parts, user),
  }),
  route({
    method: 'POST',
    path: '/users/linked-accounts',
    needs: 'user',
    summary: 'Lets the caller sign in by another account that vouches for the same verified e-mail address.',
    body: CreateLinkedAccount,
    replies: { 204: null },
    run: ({ caller, body }) => linkAccount(parts, caller, body),
  }),
  route({
    method: 'DELETE',
    path: '/users/linked-accounts/:provider/:providerUserId',
    needs: 'user',
    summary: 'The caller no longer signs in by that account; not for the last one.',
    params: LinkedAccount,
    replies: { 204: null },
    run: ({ caller, params }) => unlinkAccount(parts, caller, params),
  }),
  route({
    method: 'POST',
    path: '/users/mfa/sms/enroll',
    needs: 'user',
    summary: 'Where to enrol for codes by SMS; 404, since issuers enrol their people themselves.',
    replies: { 200: Type.String() },
    run: () => {
      throw new Problem(
        'not_found',
        'Codes by SMS are not offered here; the issuer that signs you in may have its own.',
      )
    },
  }),
]
