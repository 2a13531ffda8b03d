// Two control processes use one database. After a call to one process revokes a credential, the other process must refuse it too.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { newEncryptionKey } from '#src/control/storage/encryption.ts'
import { type ControlProcess, startControlProcess } from './control-process.ts'
import { startControl, type TestControl } from './harness.ts'
import { keys, organizations, userId } from './people.ts'

const { ours } = organizations
const developer = '00000000-0000-0000-0000-000000000001'

let app: TestControl
let one: ControlProcess
let other: ControlProcess

const statusAt = async ({ base }: ControlProcess, token: string, path: string, method = 'GET', body?: object) => {
  const reply = await fetch(base + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  await reply.arrayBuffer()
  return reply.status
}

/**
 * Calls the second control process until it refuses the revoked token. The cache of this process may allow the token for up to a
 * second.
 */
const untilRefused = async (token: string, path: string, status: number) => {
  const end = performance.now() + 15_000
  for (;;) {
    const answer = await statusAt(other, token, path)
    if (answer === status) return
    assert.equal(answer, 200)
    assert.ok(performance.now() < end, `the other process still answered 200 after 15 s`)
    await delay(5)
  }
}

const makeKey = async (who: 'owner' | 'member', name: string, permissions: string[]) => {
  const reply = await app.asUser(who).post('/api-keys', { name, permissions })
  assert.equal(reply.status, 201, reply.text)
  const token: string = reply.body.value
  for (const process of [one, other]) assert.equal(await statusAt(process, token, '/users/me'), 200)
  return token
}

suite('revocation of credentials by another control process', { timeout: 120_000 }, () => {
  before(async () => {
    app = await startControl()
    const env = { ALCOVE_ENCRYPTION_KEY: newEncryptionKey() }
    ;[one, other] = await Promise.all([startControlProcess(app.url, env), startControlProcess(app.url, env)])
  })
  after(async () => {
    await one?.[Symbol.asyncDispose]()
    await other?.[Symbol.asyncDispose]()
    await app?.[Symbol.asyncDispose]()
  })

  test('if one control process deletes an API key, the other control process answers 401 to the deleted key', async () => {
    const token = await makeKey('owner', 'short-lived', [])
    assert.equal(await statusAt(one, keys.owner, '/api-keys/short-lived', 'DELETE'), 204)
    assert.equal(await statusAt(one, token, '/users/me'), 401)
    await untilRefused(token, '/users/me', 401)
  })

  test('if a member loses a permission, control answers 403 to the member’s API key for calls that need it', async () => {
    const auditor = '00000000-0000-0000-0000-000000000007'
    const give = async (assignedRoleIds: string[]) => {
      const body = { role: 'member', assignedRoleIds }
      const path = `/organizations/${ours}/users/${userId('member')}/access`
      assert.equal(await statusAt(one, keys.owner, path, 'POST', body), 200)
    }
    await give([developer, auditor])
    const token = await makeKey('member', 'reader', ['read:audit_logs'])
    const log = `/audit/organizations/${ours}`
    assert.equal(await statusAt(other, token, log), 200)
    await give([developer])
    await untilRefused(token, log, 403)
    assert.equal(await statusAt(other, token, '/users/me'), 200)
  })

  test('if one control process removes a member, the other control process answers 401 to the member’s keys', async () => {
    const tokens = [keys.member, await makeKey('member', 'another', [])]
    assert.equal(await statusAt(other, keys.member, '/users/me'), 200)
    assert.equal(await statusAt(one, keys.owner, `/organizations/${ours}/users/${userId('member')}`, 'DELETE'), 204)
    for (const token of tokens) await untilRefused(token, '/users/me', 401)
  })
})
