// The secrets of an organization. Their values are encrypted in the database, and no reply shows them. Only runners that have a
// sandbox with the secret get its value.
import { randomUUID } from 'node:crypto'
import { Problem } from '#src/problems.ts'
import type { Actor } from '../auth/actor.ts'
import { newSecret } from '../auth/secret.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import { readDisplayText } from '../display-text.ts'
import type { Parts } from '../parts.ts'
import { checkNotSuspended } from '../people/organization.ts'
import type { RunningParts } from '../running.ts'
import { dropSecret, listWithSecret } from '../sandboxes/service.ts'
import { isDuplicate } from '../storage/database.ts'
import { ensureAuthority } from './authority.ts'
import { checkValue, readHosts } from './hosts.ts'
import type { CreateSecret, SecretsPage, SecretsQuery, SecretView, UpdateSecret } from './schemas.ts'
import {
  countSecrets,
  deleteSecret,
  findSecret,
  insertSecret,
  listSecrets,
  pageSecrets,
  type Secret,
  writeSecret,
} from './store.ts'

/** Above this number of secrets, `GET /secret`, which has no pages, answers 400. */
const mostListed = 1500

export const purposeOf = ({ id }: Pick<Secret, 'id'>) => `secret:${id}`

const asView = ({ id, name, description, placeholder, hosts, createdAt, updatedAt }: Secret): SecretView => ({
  ...{ id, name, placeholder, hosts },
  ...(description === null ? {} : { description }),
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})

const noSecret = () => new Problem('not_found', 'There is no such secret.')

const readName = (name: string): string => {
  if (/^[A-Za-z0-9_-]+$/.test(name)) return name
  throw new Problem('bad_request', 'name must be letters, digits, dashes and underscores')
}

const readDescription = (given: string | null | undefined): string | undefined => {
  if (given === null || given === undefined) return undefined
  return given === '' ? '' : readDisplayText('description', given)
}

export const createSecret = async (parts: Parts, actor: Actor, body: CreateSecret): Promise<SecretView> => {
  checkNotSuspended(parts, actor)
  const { database, clock, encryption } = parts
  const id = randomUUID()
  const now = clock.now()
  const secret: Secret = {
    id,
    organizationId: actor.organization.id,
    name: readName(body.name),
    description: readDescription(body.description) ?? null,
    placeholder: `alcove_secret_${newSecret().replaceAll(/[-_]/g, 'x')}`,
    sealedValue: encryption.encrypt(purposeOf({ id }), checkValue(body.value)),
    hosts: readHosts(body.hosts ?? []),
    version: 1,
    createdAt: now,
    updatedAt: now,
  }
  const most = await database
    .transaction(async (transaction) => {
      const exceeded = await insertSecret(transaction, secret)
      if (exceeded === undefined) await ensureAuthority(parts, transaction, secret.organizationId)
      return exceeded
    })
    .catch((error: unknown) => {
      if (!isDuplicate(error)) throw error
      throw new Problem('conflict', `There is a secret "${secret.name}" already.`, { cause: error })
    })
  if (most !== undefined) throw new Problem('quota_exceeded', `An organization can have at most ${most} secrets.`)
  return asView(secret)
}

export const viewSecret = async ({ database }: Parts, organizationId: string, id: string): Promise<SecretView> => {
  const secret = await findSecret(database.sql, organizationId, id)
  if (secret === undefined) throw noSecret()
  return asView(secret)
}

export const viewSecrets = async ({ database }: Parts, organizationId: string): Promise<SecretView[]> => {
  const secrets = await listSecrets(database.sql, organizationId, mostListed + 1)
  if (secrets.length > mostListed)
    throw new Problem(
      'bad_request',
      `There are more than ${mostListed} secrets; list them by pages at /secret/paginated.`,
    )
  return secrets.map(asView)
}

export const viewPage = async (
  { database: { sql } }: Parts,
  organizationId: string,
  query: SecretsQuery,
): Promise<SecretsPage> => {
  const { cursor, limit, sort, order } = query
  const valueIs = sort === 'name' ? 'text' : 'time'
  const after = cursor === undefined ? undefined : readCursor(cursor, { sort, order, valueIs })
  const [found, total] = await Promise.all([
    pageSecrets(sql, organizationId, { ...query, after }),
    countSecrets(sql, organizationId, query.name),
  ])
  const items = found.slice(0, limit)
  const last = found.length > limit ? items.at(-1) : undefined
  const valueIn = (secret: Secret) => (sort === 'name' ? secret.name : secret[sort].toISOString())
  return {
    items: items.map(asView),
    total,
    nextCursor: last === undefined ? null : writeCursor({ sort, order, value: valueIn(last), id: last.id }),
  }
}

/** Changes a secret. From then on, running sandboxes send the new value, and only to the new hosts. */
export const updateSecret = async (parts: RunningParts, actor: Actor, id: string, body: UpdateSecret) => {
  checkNotSuspended(parts, actor)
  const { database, clock, encryption, changes } = parts
  const { value, hosts } = body
  const change = {
    sealedValue: value == null ? undefined : encryption.encrypt(purposeOf({ id }), checkValue(value)),
    description: readDescription(body.description),
    hosts: hosts == null ? undefined : readHosts(hosts),
  }
  const place = { organizationId: actor.organization.id, id }
  const secret = await writeSecret(database.sql, place, change, clock.now())
  if (secret === undefined) throw noSecret()
  for (const row of await listWithSecret(database.sql, place.organizationId, id)) changes.renew(row)
  return asView(secret)
}

/** Deletes a secret, and removes it from all sandboxes that have it. */
export const removeSecret = async (parts: RunningParts, actor: Actor, id: string): Promise<void> => {
  const { database, clock, changes } = parts
  const { id: organizationId } = actor.organization
  const changed = await database.transaction(async (transaction) => {
    if (!(await deleteSecret(transaction, organizationId, id))) throw noSecret()
    return await dropSecret(transaction, organizationId, id, clock.now())
  })
  for (const row of changed) changes.renew(row)
}
