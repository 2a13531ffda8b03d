// The endpoints of SSH access.
import Type from 'typebox'
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import { asRecord } from '#src/control/sandboxes/record/sandbox.ts'
import { ByIdOrName, SandboxRecord } from '#src/control/sandboxes/record/schemas.ts'
import type { RunningParts } from '../running.ts'
import { createSshAccess, revokeSshAccess, validateSshAccess } from './ssh-access.ts'

const longestMinutes = 7 * 24 * 60

const CreateQuery = Type.Object({
  expiresInMinutes: Type.Integer({ minimum: 1, maximum: longestMinutes, default: 60 }),
})
const Token = Type.String({ minLength: 1, maxLength: 255 })
const RevokeQuery = Type.Object({ token: Type.Optional(Token) })
const ValidateQuery = Type.Object({ token: Token })

const SshAccess = Type.Object({
  id: Type.String(),
  sandboxId: Type.String(),
  token: Type.String(),
  expiresAt: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  sshCommand: Type.String(),
})

const SshAccessValidation = Type.Object({
  valid: Type.Boolean(),
  sandboxId: Type.String(),
  state: Type.Optional(Type.String()),
  expiresAt: Type.Optional(Type.String()),
})

export const sshRoutes = (parts: RunningParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/sandbox/:sandboxIdOrName/ssh-access',
    needs: 'write:sandboxes',
    summary: 'Creates a token for SSH access to a sandbox. Default: valid for 60 minutes.',
    params: ByIdOrName,
    query: CreateQuery,
    replies: { 200: SshAccess },
    run: ({ caller, params, query }) => createSshAccess(parts, caller, params.sandboxIdOrName, query.expiresInMinutes),
  }),
  route({
    method: 'DELETE',
    path: '/sandbox/:sandboxIdOrName/ssh-access',
    needs: 'write:sandboxes',
    summary: 'Revokes one SSH token of a sandbox, or all if `token` is absent. Sessions with revoked tokens end.',
    params: ByIdOrName,
    query: RevokeQuery,
    replies: { 200: SandboxRecord },
    run: async ({ organization, params, query }) =>
      asRecord(
        await revokeSshAccess(parts, organization.id, params.sandboxIdOrName, query.token),
        parts.settings.proxyUrl,
      ),
  }),
  route({
    method: 'GET',
    path: '/sandbox/ssh-access/validate',
    needs: 'member or ssh-gateway',
    summary:
      'Returns whether an SSH token is valid, and its sandbox’s id. A member can check only tokens of their organization.',
    query: ValidateQuery,
    replies: { 200: SshAccessValidation },
    run: ({ query, asker }) => validateSshAccess(parts, asker, query.token),
  }),
]
