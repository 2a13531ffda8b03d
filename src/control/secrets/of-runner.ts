// What control sends to a runner about secrets: the values that the runner's sandboxes may use, and which sandbox may use which
// value.

import type { SecretsOfRunner } from '#src/wire/secrets.ts'
import type { Parts } from '../parts.ts'
import type { RunningParts } from '../running.ts'
import type { SandboxRow } from '../sandboxes/record/sandbox.ts'
import { listWithSecretsOn } from '../sandboxes/service.ts'
import { certify } from './authority.ts'
import { purposeOf } from './service.ts'
import { findAuthorities, listSecretsById, type Secret } from './store.ts'

type Row = Pick<SandboxRow, 'id' | 'organization_id' | 'generation' | 'secrets'>

/**
 * Returns the secrets of these sandboxes, without secrets that have no hosts or cannot be decrypted. In requests, the placeholders
 * of omitted secrets are not replaced.
 */
const secretsOf = async (
  { database: { sql }, encryption, log }: Pick<Parts, 'database' | 'encryption' | 'log'>,
  rows: readonly Row[],
): Promise<SecretsOfRunner> => {
  const ids = [...new Set(rows.flatMap(({ secrets }) => secrets.map(({ secretId }) => secretId)))]
  if (ids.length === 0) return { secrets: [], sandboxes: rows.map(asSandbox) }
  const [secrets, authorities] = await Promise.all([
    listSecretsById(sql, ids),
    findAuthorities(sql, [...new Set(rows.map((row) => row.organization_id))]),
  ])
  const tell = (secret: Secret) => {
    const { id, version, placeholder, hosts } = secret
    const authority = authorities.find(({ organizationId }) => organizationId === secret.organizationId)
    if (authority === undefined || hosts.length === 0) return []
    try {
      const value = encryption.decrypt(purposeOf(secret), secret.sealedValue)
      const { certificate, privateKey } = certify({ encryption }, authority, secret)
      return [{ id, version, placeholder, value, hosts, certificate, privateKey }]
    } catch (error) {
      log.error({ err: error, secretId: id }, 'a secret cannot be read')
      return []
    }
  }
  return { secrets: secrets.flatMap(tell), sandboxes: rows.map(asSandbox) }
}

const asSandbox = ({ id, generation, secrets }: Row) => ({
  sandboxId: id,
  generation,
  secretIds: secrets.map(({ secretId }) => secretId),
})

/** Lists the secrets that the sandboxes of a runner may use at present. */
export const listForRunner = async (parts: Pick<Parts, 'database' | 'encryption' | 'log'>, runnerId: string) =>
  secretsOf(parts, await listWithSecretsOn(parts.database.sql, runnerId))

/** Sends a runner the secrets of one sandbox. A lost message does no harm: the runner reads the list at intervals. */
export const pushSecrets = async (parts: RunningParts, runnerId: string, row: Row): Promise<void> => {
  try {
    parts.links.say(runnerId, { type: 'secrets', secrets: await secretsOf(parts, [row]) })
  } catch (error) {
    parts.log.warn({ err: error, sandboxId: row.id }, 'secrets could not be pushed; the runner finds them in its list')
  }
}
