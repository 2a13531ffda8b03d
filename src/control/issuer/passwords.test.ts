// Tests, by counting calls of argon2, that the time for a sign-in does not reveal whether the account exists.
import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { after, suite, test } from 'node:test'

type Hashing = { message: Buffer; memory: number; passes: number; parallelism: number; tagLength: number }

const hashings: Hashing[] = []
const { argon2 } = crypto
const counted = (algorithm: 'argon2id', hashing: Hashing, then: (error: Error | null, tag: Buffer) => void) => {
  hashings.push(hashing)
  argon2(algorithm, hashing as never, then as never)
}
// Replaces `crypto.argon2` by a counting function before passwords.ts imports it.
crypto.argon2 = counted as never
syncBuiltinESMExports()
const { signsInTo, setPassword } = await import('./passwords.ts')
const { startControl } = await import('#test/control/harness.ts')
const { userId } = await import('#test/control/people.ts')
const { findAccount } = await import('./passwords.ts')

const costOf = ({ memory, passes, parallelism, tagLength }: Hashing) => ({ memory, passes, parallelism, tagLength })

suite('signing in with a password', () => {
  after(() => {
    crypto.argon2 = argon2
    syncBuiltinESMExports()
  })

  test('each sign-in hashes one password at the same cost, whether or not the account or a password exists', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await setPassword(sql, userId('owner'), 'twelve letters at least', app.clock.now())
    const work = async (email: string, password: string) => {
      const account = await findAccount(sql, email)
      hashings.length = 0
      const found = await signsInTo(account, password, 'other')
      return { found, messages: hashings.map(({ message }) => String(message)), costs: hashings.map(costOf) }
    }
    // This call waits for the hash that passwords.ts makes when it is loaded, so that this hash is not counted below.
    await work('nobody@example.com', 'x')
    const right = await work('owner@example.com', 'twelve letters at least')
    assert.deepEqual([right.found, right.messages], [userId('owner'), ['twelve letters at least']])
    for (const email of ['owner@example.com', 'member@example.com', 'nobody@example.com']) {
      const refused = await work(email, 'a wrong password')
      assert.deepEqual(refused, { found: undefined, messages: ['a wrong password'], costs: right.costs }, email)
    }
  })
})
