import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { insertAttempt, takeAttempt } from './store.ts'

suite('attempts to sign in', () => {
  test('somebody who begins 20000 keeps nobody out: what was begun first gives way', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const now = app.clock.now()
    const inSeconds = (seconds: number) => new Date(now.getTime() + seconds * 1000)
    await sql`
      insert into identity_providers
      values ('idp', ${organizations.ours}, 'idp', 'x', 'x', 'x', 'x', true, false, true, ${now}, ${now})`
    await sql`
      insert into sso_attempts
      select 'state-' || n, 'x', 'idp', 'x', 'x', 'x', ${inSeconds(60)}::timestamptz + n * interval '1 ms'
      from generate_series(1, 20000) n`
    const key = { stateHash: 'mine', browserHash: 'mine' }
    const attempt = { identityProviderId: 'idp', issuerUrl: 'x', nonce: 'x', codeVerifier: 'x' }
    await insertAttempt(sql, key, attempt, { now, expiresAt: inSeconds(600) })
    const gone = await sql`
      select n from generate_series(1, 20000) n where 'state-' || n not in (select state_hash from sso_attempts)`
    assert.deepEqual([...gone], [{ n: 1 }])
    assert.equal((await takeAttempt(sql, key, now))?.organizationId, organizations.ours)
  })
})
