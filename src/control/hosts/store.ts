// The SQL of hosts, and of the certificate authority that signs their certificates.
import type { Sql } from '#src/control/storage/database.ts'
import type { HostProgram } from '#src/wire/hosts.ts'

export type StoredAuthority = { certificate: string; sealedKey: string }

export const findAuthority = async (sql: Sql): Promise<StoredAuthority | undefined> => {
  const [row] = await sql<StoredAuthority[]>`select certificate, private_key as "sealedKey" from host_authority`
  return row
}

/** Stores the certificate authority, if the database has no authority yet. */
export const insertAuthority = async (
  sql: Sql,
  { certificate, sealedKey }: StoredAuthority,
  now: Date,
): Promise<void> => {
  await sql`
    insert into host_authority (certificate, private_key, created_at) values (${certificate}, ${sealedKey}, ${now})
    on conflict do nothing`
}

/** The hashes of the public keys of a host: one for the runner, one for the gate. */
export type HostKeys = Record<HostProgram, string>

export type Host = { runnerId: string; regionId: string; keys: HostKeys; tokenHash: string | null }

type HostRow = { regionId: string; runner: string; gate: string; tokenHash: string | null }

/** Finds a runner's host and its key hashes. The field `tokenHash` is null after the host's first call with a certificate. */
export const findHost = async (sql: Sql, runnerId: string): Promise<Host | undefined> => {
  const [row] = await sql<HostRow[]>`
    select runners.region_id as "regionId", runner_key_hash as runner, gate_key_hash as gate, token_hash as "tokenHash"
    from hosts join runners on runners.id = hosts.runner_id
    where runner_id = ${runnerId} and runners.state <> 'decommissioned'`
  if (row === undefined) return undefined
  const { regionId, runner, gate, tokenHash } = row
  return { runnerId, regionId, keys: { runner, gate }, tokenHash }
}

/**
 * Finds the runner whose machine has joined with this token. When the machine first uses its certificate, control
 * removes the token, so nobody can use it again.
 */
export const findTraded = async (sql: Sql, tokenHash: string): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`select runner_id as id from hosts where token_hash = ${tokenHash}`
  return row?.id
}

export const writeHost = async (
  sql: Sql,
  { runnerId, keys, tokenHash }: Omit<Host, 'regionId'>,
  now: Date,
): Promise<void> => {
  await sql`
    insert into hosts (runner_id, runner_key_hash, gate_key_hash, token_hash, updated_at)
    values (${runnerId}, ${keys.runner}, ${keys.gate}, ${tokenHash}, ${now})
    on conflict (runner_id) do update set runner_key_hash = excluded.runner_key_hash,
      gate_key_hash = excluded.gate_key_hash, token_hash = excluded.token_hash, updated_at = excluded.updated_at,
      public_url = null`
}

/** Stores the first public URL that the gate of a host reports. Later calls change nothing. Returns the stored URL. */
export const keepPublicUrl = async (sql: Sql, runnerId: string, told = ''): Promise<string> => {
  const [row] = await sql<{ url: string }[]>`
    update hosts set public_url = coalesce(public_url, ${told}) where runner_id = ${runnerId}
    returning public_url as url`
  return row?.url ?? ''
}

/** Whether the host of another runner has one of these keys. */
export const hasKeyOfOthers = async (sql: Sql, runnerId: string, keys: HostKeys): Promise<boolean> => {
  const hashes = Object.values(keys)
  const rows = await sql`
    select from hosts where runner_id <> ${runnerId}
      and (runner_key_hash = any(${hashes}) or gate_key_hash = any(${hashes})) limit 1`
  return rows.length > 0
}

/** Removes the token with which a host has joined, so that the token cannot be used again. */
export const endToken = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`update hosts set token_hash = null where runner_id = ${runnerId} and token_hash is not null`
}

export const deleteHost = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`delete from hosts where runner_id = ${runnerId}`
}

/** The PostgreSQL channel for changed certificates of a host. The payload is the id of the runner. */
export const hostChannel = 'alcove_hosts'

/** Makes every control process check the certificates of this host's connections when the transaction commits. */
export const announceHostChange = async (sql: Sql, runnerId: string): Promise<void> => {
  await sql`select pg_notify(${hostChannel}, ${runnerId})`
}
