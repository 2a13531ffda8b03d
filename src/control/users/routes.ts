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
    summary: 'Returns the user to whom the credential belongs.',
    replies: { 200: User },
    run: ({ user }) => asUserView(user),
  }),
  route({
    method: 'GET',
    path: '/users/account-providers',
    needs: 'user',
    summary: 'Lists the sign-in providers of this server, and whether the caller has a linked account at each.',
    replies: { 200: Type.Array(AccountProvider) },
    run: ({ user }) => listAccountProviders(parts, user),
  }),
  route({
    method: 'POST',
    path: '/users/linked-accounts',
    needs: 'user',
    summary: 'Links an account at a sign-in provider to the caller. Both must have the same verified e-mail address.',
    body: CreateLinkedAccount,
    replies: { 204: null },
    run: ({ caller, body }) => linkAccount(parts, caller, body),
  }),
  route({
    method: 'DELETE',
    path: '/users/linked-accounts/:provider/:providerUserId',
    needs: 'user',
    summary: 'Removes a linked account, which then no longer signs in the caller. The last account cannot be removed.',
    params: LinkedAccount,
    replies: { 204: null },
    run: ({ caller, params }) => unlinkAccount(parts, caller, params),
  }),
  route({
    method: 'POST',
    path: '/users/mfa/sms/enroll',
    needs: 'user',
    summary: 'Always answers 404: this server offers no codes by SMS. The sign-in provider may offer its own.',
    replies: { 200: Type.String() },
    run: () => {
      throw new Problem(
        'not_found',
        'Alcove does not offer codes by SMS. The provider that signs you in may offer them.',
      )
    },
  }),
]
