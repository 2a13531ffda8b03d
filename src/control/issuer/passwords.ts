// Passwords of local accounts, hashed with Node's argon2id. Each hash contains its cost, so the cost of new hashes can
// be raised later.
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { FairQueue } from '#src/kit/queue.ts'
import { Problem } from '#src/problems.ts'
import type { Sql } from '../storage/database.ts'

/** Cost of a hash: the second option that OWASP recommends, which is 19 MiB and two passes. */
const memoryKiB = 19_456
const passes = 2
const tagLength = 32

/**
 * Queues for hashing, because each hash needs a thread and 19 MiB. Known browsers, in which somebody has signed in to the
 * account before, never wait behind new browsers.
 */
const lanes = { known: new FairQueue({ atOnce: 1 }), other: new FairQueue({ atOnce: 2 }) }
export type HashingLane = keyof typeof lanes

const derive = promisify(argon2)

type Cost = { m: number; t: number; length: number }

const argon2id = (password: string, nonce: Buffer, { m, t, length }: Cost, lane: HashingLane = 'other') =>
  lanes[lane].run(
    async () =>
      (await derive('argon2id', {
        message: Buffer.from(password.normalize('NFKC'), 'utf8'),
        nonce,
        parallelism: 1,
        tagLength: length,
        memory: m,
        passes: t,
      })) as Buffer,
  )

const encode = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

const hashPassword = async (password: string): Promise<string> => {
  const nonce = randomBytes(16)
  const tag = await argon2id(password, nonce, { m: memoryKiB, t: passes, length: tagLength })
  return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=1$${encode(nonce)}$${encode(tag)}`
}

const isPassword = async (password: string, hash: string, lane: HashingLane): Promise<boolean> => {
  const [, m, t, nonce, tag] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([\w+/]+)\$([\w+/]+)$/.exec(hash) ?? []
  if (nonce === undefined || tag === undefined) return false
  const expected = Buffer.from(tag, 'base64')
  const cost = { m: Number(m), t: Number(t), length: expected.length }
  const found = await argon2id(password, Buffer.from(nonce, 'base64'), cost, lane)
  return timingSafeEqual(found, expected)
}

export const longestPassword = 256
const shortestPassword = 12

export const checkPassword = (password: string): void => {
  if ([...password].length < shortestPassword || password.length > longestPassword || password.includes('\0')) {
    throw new Problem('bad_request', `A password must have ${shortestPassword} to ${longestPassword} characters.`)
  }
}

/**
 * Makes a password: 20 letters and digits in groups, without characters that look alike. The password has about 98
 * random bits.
 */
export const newPassword = (): string => {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789'
  const text = [...randomBytes(20)].map((byte) => letters[byte % letters.length]).join('')
  return text.match(/.{5}/g)!.join('-')
}

/**
 * A hash that belongs to no account. The given password is compared with this hash if the account is unknown or has no
 * password. So the answer takes as long as for a wrong password.
 */
const nobodys = hashPassword(randomBytes(16).toString('hex'))
nobodys.catch(() => {})

export type Account = { id: string; hash: string | null }

export const findAccount = async (sql: Sql, email: string): Promise<Account | undefined> => {
  const [row] = await sql<Account[]>`
    select u.id, p.hash from users u left join user_passwords p on p.user_id = u.id where lower(u.email) = lower(${email})`
  return row
}

/**
 * Returns the id of the account if the password is right. If `account` is undefined or has no password, the call takes
 * as long as with a wrong password.
 */
export const signsInTo = async (
  account: Account | undefined,
  password: string,
  lane: HashingLane,
): Promise<string | undefined> => {
  const isRight = await isPassword(password, account?.hash ?? (await nobodys), lane)
  return isRight && account?.hash ? account.id : undefined
}

export const setPassword = async (sql: Sql, userId: string, password: string, now: Date): Promise<void> => {
  await sql`
    insert into user_passwords (user_id, hash, changed_at) values (${userId}, ${await hashPassword(password)}, ${now})
    on conflict (user_id) do update set hash = excluded.hash, changed_at = excluded.changed_at`
}
