import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { insertAttempt, listPendingLinks, putLink, takeAttempt } from './store.ts'

suite('the stored attempts to sign in', () => {
  test('above 20,000 sign-in attempts, only the client address with the most attempts loses its oldest ones', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const now = app.clock.now()
    const inSeconds = (seconds: number) => new Date(now.getTime() + seconds * 1000)
    await sql`
      insert into identity_providers
      values ('idp', ${organizations.ours}, 'idp', 'x', 'x', 'x', 'x', true, false, true, ${now}, ${now})`
    const attempt = { identityProviderId: 'idp', issuerUrl: 'x', nonce: 'x', codeVerifier: 'x' }
    const begin = (name: string, source: string, seconds: number) =>
      insertAttempt(sql, { stateHash: name, browserHash: name }, attempt, {
        now,
        expiresAt: inSeconds(seconds),
        source,
      })
    await begin('first', '198.51.100.1', 30)
    await sql`
      insert into sso_attempts
      select 'state-' || n, 'x', 'idp', 'x', 'x', 'x', ${inSeconds(60)}::timestamptz + n * interval '1 ms', '198.51.100.2'
      from generate_series(1, 19999) n`
    await begin('last', '198.51.100.3', 600)
    const [lost] = await sql`
      select min(n) as first, max(n) as last, count(*)::integer as count from generate_series(1, 19999) n
      where 'state-' || n not in (select state_hash from sso_attempts)`
    assert.deepEqual({ ...lost }, { first: 1, last: 1001, count: 1001 })
    for (const name of ['first', 'last']) {
      const taken = await takeAttempt(sql, { stateHash: name, browserHash: name }, now)
      assert.equal(taken?.organizationId, organizations.ours)
    }
  })
})

suite('pending links between accounts of a provider and users', () => {
  test('a user has at most one pending SSO link per identity provider, the newest, for at most a week', async () => {
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
