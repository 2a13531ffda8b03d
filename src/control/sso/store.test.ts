import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { insertAttempt, listPendingLinks, putLink, takeAttempt } from './store.ts'

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

suite('links that wait', () => {
  test('are one to a provider and user, the newest, and do not outlast their week', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const begun = app.clock.now()
    for (const id of ['one', 'other']) {
      await sql`
        insert into identity_providers
        values (${id}, ${organizations.ours}, ${id}, 'x', 'x', 'x', 'x', true, false, true, ${begun}, ${begun})`
    }
    const put = async (id: string, subject: string, user: Parameters<typeof userId>[0]) => {
      const createdAt = app.clock.now()
      const expiresAt = new Date(createdAt.getTime() + 7 * 86_400_000)
      const link = { userId: userId(user), email: 'x', state: 'pending', createdAt, expiresAt } as const
      await putLink(sql, { provider: { id, issuerUrl: 'x' }, subject }, link)
    }
    await put('one', 'genuine', 'member')
    for (let made = 1; made <= 3; made += 1) await put('other', `fake ${made}`, 'member')
    await put('other', 'genuine', 'viewer')
    const waiting = async () => {
      const rows = await sql<{ subject: string }[]>`select subject from sso_links order by user_id, subject`
      return rows.map(({ subject }) => subject)
    }
    assert.deepEqual(await waiting(), ['fake 3', 'genuine', 'genuine'])
    const names = (await listPendingLinks(sql, userId('member'), begun)).map(({ idpName }) => idpName)
    assert.deepEqual(names.sort(), ['one', 'other'])
    app.clock.advance({ hours: 7 * 24 })
    await put('one', 'later', 'owner')
    assert.deepEqual(await waiting(), ['later'])
  })
})
