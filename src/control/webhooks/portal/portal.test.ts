import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { suite, test } from 'node:test'
import pino from 'pino'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'

const { ours, theirs } = organizations
const portal = '/webhooks/portal'

const openLink = async (app: TestControl, who: 'owner' | 'stranger' = 'owner', organizationId: string = ours) =>
  (await app.as(who).post(`/webhooks/organizations/${organizationId}/app-portal-access`)).body as {
    token: string
    url: string
  }

const cookieFrom = (header: unknown) => String(header).split(';')[0] ?? ''

/** Opens a link to the portal page, as a browser does. Returns functions that make further calls in the session. */
const enter = async (app: TestControl, who: 'owner' | 'stranger' = 'owner', organizationId: string = ours) => {
  const { token } = await openLink(app, who, organizationId)
  const reply = await app.as('nobody').get(`${portal}?token=${token}`)
  assert.deepEqual([reply.status, reply.headers['location']], [303, '/api/webhooks/portal'])
  const cookie = cookieFrom(reply.headers['set-cookie'])
  const read = (path = '') => app.as('nobody').get(`${portal}${path}`, { headers: { cookie } })
  const page = await read()
  const [, word = ''] = /name="form" value="([0-9a-f]{64})"/.exec(page.text) ?? []
  const send = (path: string, fields: [string, string][] = [], headers: Record<string, string> = {}) =>
    app.as('nobody').send('POST', `${portal}${path}`, new URLSearchParams([['form', word], ...fields]).toString(), {
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  return { cookie, read, send, word, page }
}

suite('the portal page', () => {
  test('a portal link opens the webhook portal once; its token is not in redirects, pages or logs', async () => {
    const lines: string[] = []
    const sink = new Writable({
      write: (chunk, _encoding, done) => {
        lines.push(String(chunk))
        done()
      },
    })
    await using app = await startControl({ log: pino({ level: 'trace' }, sink) })
    const { token } = await openLink(app)
    const first = await app.as('nobody').get(`${portal}?token=${token}`)
    assert.equal(first.status, 303)
    assert.match(String(first.headers['set-cookie']), /; HttpOnly; SameSite=Lax$/)
    const again = await app.as('nobody').get(`${portal}?token=${token}`)
    assert.equal(again.status, 401)
    const cookie = cookieFrom(first.headers['set-cookie'])
    const page = await app.as('nobody').get(portal, { headers: { cookie } })
    assert.equal(page.status, 200)
    for (const text of [page.text, again.text, String(first.headers['location']), lines.join('\n')]) {
      assert.ok(!text.includes(token))
      assert.ok(!text.includes(cookie.split('=')[1] ?? '?'))
    }
    const rows = await app.database.sql`select hash from webhook_portal_tokens`
    assert.ok(rows.every(({ hash }) => hash !== token))
  })

  test('the webhook portal has no scripts, and its headers allow none', async () => {
    await using app = await startControl()
    const { page } = await enter(app)
    assert.doesNotMatch(page.text, /<script|javascript:|\son\w+=/i)
    const { headers } = page
    assert.match(
      String(headers['content-security-policy']),
      /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'/,
    )
    assert.match(String(headers['content-security-policy']), /frame-ancestors 'none'/)
    assert.deepEqual(
      [headers['cache-control'], headers['x-content-type-options'], headers['referrer-policy']],
      ['no-store', 'nosniff', 'same-origin'],
    )
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
  })

  test('a user may have 100 webhook portal links and sessions together; the next link deletes the oldest', async () => {
    await using app = await startControl()
    const other = await openLink(app, 'stranger', theirs)
    const first = await openLink(app)
    for (let n = 0; n < 99; n += 1) await openLink(app)
    const second = await openLink(app)
    const visit = async ({ token }: { token: string }) =>
      (await app.as('nobody').get(`${portal}?token=${token}`)).status
    assert.deepEqual([await visit(first), await visit(second), await visit(other)], [401, 303, 303])
    const [row] = await app.database.sql`
      select count(*)::integer as count from webhook_portal_tokens where organization_id = ${ours}`
    assert.equal(row?.['count'], 100)
  })

  test('an operator can open an organization’s webhook portal without being a member of the organization', async () => {
    await using app = await startControl()
    const { body } = await app.asUser('admin', ours).post(`/webhooks/organizations/${ours}/app-portal-access`)
    const entered = await app.as('nobody').get(`${portal}?token=${(body as { token: string }).token}`)
    const cookie = cookieFrom(entered.headers['set-cookie'])
    assert.equal((await app.as('nobody').get(portal, { headers: { cookie } })).status, 200)
    // When the user is no longer an operator, the portal refuses the next call, because the user does not own the
    // organization.
    await app.database.sql`update users set system_role = 'user'`
    assert.equal((await app.as('nobody').get(portal, { headers: { cookie } })).status, 401)
  })

  test('the webhook portal answers 401 if the session is missing or expired, or if the link is expired', async () => {
    await using app = await startControl()
    const { token } = await openLink(app)
    const ask = (path: string, cookie = '') => app.as('nobody').get(`${portal}${path}`, { headers: { cookie } })
    assert.equal((await ask('')).status, 401)
    assert.equal((await ask('/endpoints/ep_x')).status, 401)
    assert.equal((await ask('?token=x')).status, 401)
    // The token of a portal link is not accepted as the cookie of a session.
    assert.equal((await ask('', `alcove_webhooks=${token}`)).status, 401)
    app.clock.advance({ minutes: 10 })
    assert.equal((await ask(`?token=${token}`)).status, 401)
    const { cookie } = await enter(app)
    assert.equal((await ask('', cookie)).status, 200)
    app.clock.advance({ minutes: 60 })
    assert.equal((await ask('', cookie)).status, 401)
  })

  test('a session of the webhook portal ends when its user is no longer an owner', async () => {
    await using app = await startControl()
    const { read } = await enter(app)
    assert.equal((await read()).status, 200)
    await app.database.sql`update members set role = 'member' where user_id = ${userId('owner')}`
    assert.equal((await read()).status, 401)
  })

  test('the webhook portal can add, change, disable and delete endpoints, and replace their secrets', async () => {
    await using app = await startControl()
    const { read, send } = await enter(app)
    const added = await send('/endpoints', [
      ['url', 'https://hooks.example.com/'],
      ['description', 'Ours'],
      ['events', 'sandbox.created'],
    ])
    assert.equal(added.status, 200)
    assert.match(added.text, /whsec_[A-Za-z0-9+/]{43}=/)
    const [endpoint] = (await app.as('owner').get(`/webhooks/organizations/${ours}/endpoints`)).body
    assert.deepEqual(
      [endpoint.url, endpoint.description, endpoint.events],
      ['https://hooks.example.com/', 'Ours', ['sandbox.created']],
    )
    const at = `/endpoints/${endpoint.id}`
    assert.doesNotMatch((await read(at)).text, /whsec_/)
    const now = async () => (await app.as('owner').get(`/webhooks/organizations/${ours}${at}`)).body
    assert.equal(
      (
        await send(at, [
          ['url', 'https://hooks.example.com/2'],
          ['description', ''],
        ])
      ).status,
      303,
    )
    assert.deepEqual([(await now()).url, (await now()).events], ['https://hooks.example.com/2', []])
    assert.equal((await send(`${at}/disable`)).status, 303)
    assert.equal((await now()).disabled, true)
    assert.equal((await send(`${at}/enable`)).status, 303)
    assert.equal((await now()).disabled, false)
    assert.match((await send(`${at}/rotate`)).text, /whsec_/)
    assert.equal((await send(`${at}/resend/msg_${'0'.repeat(32)}`)).status, 404)
    assert.equal((await send(`${at}/delete`)).status, 303)
    assert.equal((await now()).code, 'NOT_FOUND')
    assert.equal((await send('/endpoints', [['url', 'file:///etc/passwd']])).status, 400)
  })

  test('each change in the webhook portal has an audit row with the name of the equivalent API call', async () => {
    await using app = await startControl()
    const { send } = await enter(app)
    await send('/endpoints', [['url', 'https://hooks.example.com/']])
    const [{ id }] = (await app.as('owner').get(`/webhooks/organizations/${ours}/endpoints`)).body
    await send(`/endpoints/${id}/rotate`)
    await send(`/endpoints/${id}`, [['url', 'gopher://x']])
    const { items } = (await app.as('owner').get(`/audit/organizations/${ours}`)).body
    const at = 'POST /webhooks/organizations/{organizationId}/endpoints'
    const told = items.map(({ call, credential, actorId, targets, statusCode }: Record<string, unknown>) => [
      ...[call, credential, actorId, statusCode],
      targets,
    ])
    assert.deepEqual(told.slice(0, 3), [
      ['PATCH /webhooks/organizations/{organizationId}/endpoints/{endpointId}', 'portal', userId('owner'), 400, [id]],
      [`${at}/{endpointId}/rotate-secret`, 'portal', userId('owner'), 200, [id]],
      [at, 'portal', userId('owner'), 200, []],
    ])
  })

  test('the audit row of a change in the webhook portal is written before the reply is sent', async () => {
    await using app = await startControl()
    const { send } = await enter(app)
    await app.database.sql.unsafe(`
      create function wait_a_moment() returns trigger language plpgsql as 'begin perform pg_sleep(0.3); return new; end';
      create trigger slowly before update on audit_log for each row execute function wait_a_moment()`)
    const statuses = async () => {
      const rows = await app.database.sql`select status from audit_log where credential = 'portal' order by id`
      return rows.map(({ status }) => status)
    }
    await send('/endpoints', [['url', 'https://hooks.example.com/']])
    assert.deepEqual(await statuses(), [200])
    const [{ id }] = (await app.as('owner').get(`/webhooks/organizations/${ours}/endpoints`)).body
    await send(`/endpoints/${id}`, [['url', 'https://hooks.example.com/2']])
    await send(`/endpoints/${id}/disable`)
    await send(`/endpoints/${id}/rotate`)
    await send(`/endpoints/${id}/delete`)
    await send(`/endpoints/${id}/delete`)
    assert.deepEqual(await statuses(), [200, 200, 200, 200, 200, 404])
  })

  test('the webhook portal answers 400 or 404, never 500, for paths and fields that its pages do not send', async () => {
    await using app = await startControl()
    const { read, send } = await enter(app)
    for (const odd of ['%00', '%ff', '%EF%BF%BE', 'x', "'", 'ep_', 'a'.repeat(900), '..%2f..']) {
      for (const { status } of [await read(`/endpoints/${odd}`), await send(`/endpoints/${odd}/delete`)])
        assert.ok(status === 404 || status === 400, `${odd}: ${status}`)
      assert.ok([400, 404].includes((await send(`/endpoints/ep_${'0'.repeat(24)}/resend/${odd}`)).status), odd)
    }
    for (const odd of ['\0', 'https://example.com/\0', '', 'x'.repeat(5000), 'https://\ud800/'])
      assert.equal((await send('/endpoints', [['url', odd]])).status, 400, odd)
    assert.equal(
      (
        await send('/endpoints', [
          ['url', 'https://example.com/'],
          ['description', 'a\0b'],
        ])
      ).status,
      400,
    )
    assert.equal((await send('/endpoints', [['url', 'x'.repeat(20_000)]])).status, 413)
    for (const query of ['?token=', '?token=%00', '?token=a&token=b', '?token[]=x'])
      assert.ok((await app.as('nobody').get(`${portal}${query}`)).status === 401, query)
  })

  test('the webhook portal answers 403 to a form from another page, even with the session’s cookie', async () => {
    await using app = await startControl()
    const mine = await enter(app)
    const foreign = await enter(app, 'stranger', theirs)
    const fields: [string, string][] = [['url', 'https://evil.example.com/']]
    for (const word of ['', 'x', foreign.word]) {
      const body = new URLSearchParams([['form', word], ...fields]).toString()
      const headers = { cookie: mine.cookie, 'content-type': 'application/x-www-form-urlencoded' }
      assert.equal((await app.as('nobody').send('POST', `${portal}/endpoints`, body, { headers })).status, 403)
    }
    assert.equal((await mine.send('/endpoints', fields, { 'sec-fetch-site': 'cross-site' })).status, 403)
    // The portal answers 415 to JSON, which a page of another site cannot send without a CORS preflight.
    assert.equal((await mine.send('/endpoints', fields, { 'content-type': 'application/json' })).status, 415)
    assert.deepEqual((await app.as('owner').get(`/webhooks/organizations/${ours}/endpoints`)).body, [])
  })

  test('the webhook portal escapes users’ texts, and shows no other organization’s endpoints', async () => {
    await using app = await startControl()
    const mine = await enter(app)
    const url = `https://hooks.example.com/?q=%22'"><img src=x>`
    const added = await mine.send('/endpoints', [
      ['url', url],
      ['description', `"quoted' & <b`],
    ])
    assert.equal(added.status, 200)
    assert.doesNotMatch(added.text, /<img|<b\b/)
    assert.match(added.text, /&quot;quoted&#39; &amp; &lt;b/)
    const [endpoint] = (await app.as('owner').get(`/webhooks/organizations/${ours}/endpoints`)).body
    const foreign = await enter(app, 'stranger', theirs)
    assert.doesNotMatch(foreign.page.text, /hooks\.example\.com/)
    assert.equal((await foreign.read(`/endpoints/${endpoint.id}`)).status, 404)
    assert.equal((await foreign.send(`/endpoints/${endpoint.id}/delete`)).status, 404)
  })
})
