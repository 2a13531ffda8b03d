// Tokens that this server signs for single sign-on of organizations. Control always accepts these tokens, and checks them like
// tokens of other issuers. A signing key is replaced after 30 days, and its public key is kept for at least 60 days. A token is
// valid for an hour.
import { randomUUID } from 'node:crypto'
import { errors, exportJWK, generateKeyPair, importJWK, type JWK, SignJWT } from 'jose'
import type { User } from '#src/control/people/user.ts'
import type { Parts } from '../parts.ts'
import type { Sql } from '../storage/database.ts'
import type { OwnIssuer } from './issuers.ts'

export type OwnTokens = OwnIssuer & {
  issue: (user: Pick<User, 'id'>) => Promise<{ accessToken: string; expiresAt: Date }>
}

type OwnTokensParts = Pick<Parts, 'database' | 'clock' | 'encryption'> & {
  settings: { publicUrl: string; identity: { audience: string } }
}

const algorithm = 'ES256'
const tokenSeconds = 3600
const keyDays = 30
const millisecondsOfDay = 86_400_000
const lock = 7_305_524
/** Maximum number of public keys in the cache. */
const keepAtMost = 100

type KeyRow = { id: string; public_key: JWK; private_key: string; created_at: Date }

const purposeOf = (id: string) => `signing-key:${id}`

const findNewest = async (sql: Sql, since: Date): Promise<KeyRow | undefined> => {
  const [row] = await sql<KeyRow[]>`
    select * from signing_keys where created_at > ${since} order by created_at desc, id limit 1`
  return row
}

const daysBefore = (now: Date, days: number) => new Date(now.getTime() - days * millisecondsOfDay)

export const createOwnTokens = ({ database, clock, encryption, settings }: OwnTokensParts): OwnTokens => {
  const url = `${settings.publicUrl}/api/auth/sso`
  const known = new Map<string, JWK>()

  const makeKey = async (): Promise<KeyRow> => {
    const id = randomUUID()
    const pair = await generateKeyPair(algorithm, { extractable: true })
    const secret = encryption.encrypt(purposeOf(id), JSON.stringify(await exportJWK(pair.privateKey)))
    const publicKey = await exportJWK(pair.publicKey)
    return await database.transaction(async (sql) => {
      await sql`select pg_advisory_xact_lock(${lock})`
      const now = clock.now()
      const other = await findNewest(sql, daysBefore(now, keyDays))
      if (other !== undefined) return other
      await sql`delete from signing_keys where created_at < ${daysBefore(now, 2 * keyDays)}`
      await sql`insert into signing_keys (id, public_key, private_key, created_at)
                values (${id}, ${sql.json(publicKey as Record<string, string>)}, ${secret}, ${now})`
      return { id, public_key: publicKey, private_key: secret, created_at: now }
    })
  }

  const findPublic = async (id: string): Promise<JWK | undefined> => {
    const kept = known.get(id)
    if (kept !== undefined) return kept
    const [row] = await database.sql<KeyRow[]>`select * from signing_keys where id = ${id}`
    if (row === undefined) return undefined
    if (known.size >= keepAtMost) known.clear()
    known.set(id, row.public_key)
    return row.public_key
  }

  return {
    url,
    getKey: async ({ alg, kid }) => {
      const jwk = alg === algorithm && kid !== undefined && kid.length <= 64 ? await findPublic(kid) : undefined
      if (jwk === undefined) throw new errors.JWKSNoMatchingKey()
      return await importJWK(jwk, algorithm)
    },
    issue: async ({ id: subject }) => {
      const now = clock.now()
      const key = (await findNewest(database.sql, daysBefore(now, keyDays))) ?? (await makeKey())
      const jwk = JSON.parse(encryption.decrypt(purposeOf(key.id), key.private_key)) as JWK
      const expiresAt = new Date(now.getTime() + tokenSeconds * 1000)
      const accessToken = await new SignJWT()
        .setProtectedHeader({ alg: algorithm, kid: key.id, typ: 'at+jwt' })
        .setIssuer(url)
        .setAudience(settings.identity.audience)
        .setSubject(subject)
        .setIssuedAt(now)
        .setExpirationTime(expiresAt)
        .setJti(randomUUID())
        .sign(await importJWK(jwk, algorithm))
      return { accessToken, expiresAt }
    },
  }
}
