// Access to a sandbox over SSH, with a token as the SSH user name. Each token is for one sandbox and expires.
import { randomInt, randomUUID } from 'node:crypto'
import type { Caller, SshAsker } from '#src/control/auth/route.ts'
import { hashKey } from '#src/control/auth/secret.ts'
import { findRegion } from '#src/control/regions/service.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { getSandbox } from '#src/control/sandboxes/service.ts'
import { Problem } from '#src/problems.ts'
import { sshToken, sshTokenLetters } from '#src/wire/ssh.ts'
import type { RunningParts } from '../running.ts'
import { countSshAccess, deleteSshAccess, findBySshToken, forgetSshAccess, insertSshAccess } from './ssh-tokens.ts'

/** Maximum number of valid tokens that a sandbox may have at a time. */
const mostTokens = 100
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

const newToken = () =>
  `ssh_${Array.from({ length: sshTokenLetters }, () => letters[randomInt(letters.length)]).join('')}`

/** Returns the command with which a user enters a sandbox over SSH. `GET /config` shows it with the token `{{TOKEN}}`. */
export const sshCommand = ({ host, port }: { host: string; port: number }, token: string): string =>
  `ssh -p ${port} ${token}@${host}`

/** Finds the SSH gateway for a sandbox: the gateway of its region or, if the region has none, the gateway of this server. */
const findGateway = async ({ database, settings }: RunningParts, sandbox: SandboxRow) => {
  const region = await findRegion(database.sql, sandbox.organization_id, sandbox.region_id)
  if (!region?.sshGatewayUrl) return settings.sshGateway
  const { hostname, port } = new URL(region.sshGatewayUrl)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 22 : Number(port) }
}

export const createSshAccess = async (
  parts: RunningParts,
  { organization, keyHash }: Caller,
  idOrName: string,
  expiresInMinutes: number,
) => {
  const { database, clock } = parts
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const gateway = await findGateway(parts, sandbox)
  if (gateway === undefined)
    throw new Problem('bad_request', 'This server has no SSH gateway; its operator turned it off.')
  const now = clock.now()
  const token = newToken()
  await forgetSshAccess(database.sql, now)
  const made = await database.transaction(async (transaction) => {
    if ((await countSshAccess(transaction, sandbox.id, now)) >= mostTokens) {
      throw new Problem('rate_limited', `A sandbox may have ${mostTokens} SSH tokens at a time. Revoke some of them.`)
    }
    return await insertSshAccess(transaction, {
      id: randomUUID(),
      token_hash: hashKey(token),
      sandbox_id: sandbox.id,
      maker_hash: keyHash ?? null,
      created_at: now,
      updated_at: now,
      expires_at: new Date(now.getTime() + expiresInMinutes * 60_000),
    })
  })
  return {
    id: made.id,
    sandboxId: sandbox.id,
    token,
    expiresAt: made.expires_at.toISOString(),
    createdAt: made.created_at.toISOString(),
    updatedAt: made.updated_at.toISOString(),
    sshCommand: sshCommand(gateway, token),
  }
}

/**
 * Revokes one token, or all tokens of the sandbox. SSH sessions that were opened with a revoked token end within
 * seconds.
 */
export const revokeSshAccess = async (
  { database }: RunningParts,
  organizationId: string,
  idOrName: string,
  token: string | undefined,
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(database.sql, organizationId, idOrName)
  const count = await deleteSshAccess(database.sql, sandbox.id, token === undefined ? undefined : hashKey(token))
  if (count === 0 && token !== undefined) throw new Problem('not_found', 'This sandbox has no such SSH token.')
  return sandbox
}

/**
 * Whether the asker may validate tokens of this sandbox: a member of its organization, or the SSH gateway of its region
 * or of this server.
 */
const mayKnow = (asker: SshAsker, sandbox: SandboxRow) =>
  'organizationId' in asker
    ? sandbox.organization_id === asker.organizationId
    : asker.sshRegionId === undefined || sandbox.region_id === asker.sshRegionId

/** Returns whether an SSH token is valid now, and of which sandbox. An SSH gateway gets state and expiry too. */
export const validateSshAccess = async ({ database, clock }: RunningParts, asker: SshAsker, token: string) => {
  const opened = sshToken.test(token) ? await findBySshToken(database.sql, hashKey(token), clock.now()) : undefined
  if (opened === undefined || !mayKnow(asker, opened.sandbox)) return { valid: false, sandboxId: '' }
  const { sandbox, expiresAt } = opened
  const told = { valid: true, sandboxId: sandbox.id }
  return 'organizationId' in asker ? told : { ...told, state: sandbox.state, expiresAt: expiresAt.toISOString() }
}
