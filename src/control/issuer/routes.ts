// The endpoints `/admin/users`: local accounts, for the operator of the server. The command `alcove user` calls these endpoints.
import Type from 'typebox'
import { type ControlRoute, route } from '../auth/route.ts'
import { type AccountParts, addAccount, giveLink, givePassword } from './accounts.ts'

const Email = Type.String({ minLength: 3, maxLength: 254 })
const AddAccount = Type.Object({ email: Email, name: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })) })
const Account = Type.Object({ id: Type.String(), email: Type.String(), name: Type.String() })
const GivePassword = Type.Object({ email: Email, password: Type.Optional(Type.String({ maxLength: 1024 })) })
const GiveLink = Type.Object({ email: Email })
const Link = Type.Object({ email: Type.String(), url: Type.String(), expiresAt: Type.String() })
const Password = Type.Object({ email: Type.String(), password: Type.String() })

export const accountRoutes = (parts: AccountParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/admin/users',
    needs: 'admin',
    givesAccess: true,
    summary: 'Creates a local account with a personal organization. The account has no password yet.',
    body: AddAccount,
    replies: { 201: Account },
    run: ({ body }) => addAccount(parts, body),
  }),
  route({
    method: 'POST',
    path: '/admin/users/password',
    needs: 'admin',
    givesAccess: true,
    summary:
      'Sets the password of a local account and ends the account’s sessions. Without `password`, generates a random one.',
    body: GivePassword,
    replies: { 200: Password },
    run: ({ body }) => givePassword(parts, body),
  }),
  route({
    method: 'POST',
    path: '/admin/users/link',
    needs: 'admin',
    givesAccess: true,
    summary:
      'Creates a one-time dashboard sign-in link for a local account, valid for 24 hours. Earlier links stop working.',
    body: GiveLink,
    replies: { 200: Link },
    run: ({ body }) => giveLink(parts, body),
  }),
]
