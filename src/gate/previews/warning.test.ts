import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Access } from '#src/wire/access.ts'
import { type Sides, startSides } from '../testing/simulated.ts'
import { browser, openedBy, previewHost, visit } from '../testing/visiting.ts'

suite('the warning before a preview', () => {
  const warned = (sides: Sides, by: Access['openedBy'] = 'public') => openedBy(sides, by, { warnsVisitors: true })

  test('a person gets the preview warning until they accept it with the form at the preview’s address', async () => {
    await using sides = await startSides()
    warned(sides)
    const page = await visit(sides, { path: '/a?b=1', headers: browser })
    assert.equal(page.status, 200)
    assert.match(page.text, /<form method="post" action="\/a\?b=1&amp;ALCOVE_ACCEPT_PREVIEW=true">/)
    assert.match(String(page.headers['content-security-policy']), /frame-ancestors 'none'/)
    assert.deepEqual(sides.dialled, [])

    const press = (headers: Record<string, string>) =>
      visit(sides, { method: 'POST', path: '/a?b=1&ALCOVE_ACCEPT_PREVIEW=true', headers: { ...browser, ...headers } })
    for (const headers of [{}, { origin: 'http://evil.test' }, { origin: 'null' }] as Record<string, string>[]) {
      assert.equal((await press(headers)).status, 403)
    }
    const accepted = await press({ origin: `http://${previewHost}` })
    assert.deepEqual([accepted.status, accepted.headers.location], [303, '/a?b=1'])
    const cookie = String(accepted.headers['set-cookie']).split(';')[0]!
    assert.equal(cookie, 'alcove-preview-accepted-box-id=true')
    assert.equal((await visit(sides, { headers: { ...browser, cookie } })).text, 'hello from inside')
    assert.equal(sides.seen[0]?.headers.cookie, undefined)
    assert.match(
      (await visit(sides, { headers: { ...browser, cookie: 'alcove-preview-accepted-x=true' } })).text,
      /<form/,
    )
  })

  test('a person gets the preview warning even when a form on another site posts to the preview', async () => {
    await using sides = await startSides()
    warned(sides)
    const headers = { ...browser, origin: 'http://evil.test', 'sec-fetch-site': 'cross-site' }
    const page = await visit(sides, { method: 'POST', path: '/a', headers, body: 'a=b' })
    assert.match(page.text, /<form method="post" action="\/a\?ALCOVE_ACCEPT_PREVIEW=true">/)
    assert.deepEqual(sides.dialled, [])
  })

  test('programs, and calls with a key or with X-Daytona-Skip-Preview-Warning, get no preview warning', async () => {
    await using sides = await startSides()
    warned(sides)
    assert.equal((await visit(sides)).text, 'hello from inside')
    const skip = { ...browser, 'x-daytona-skip-preview-warning': 'true' }
    assert.equal((await visit(sides, { headers: skip })).text, 'hello from inside')
    for (const by of ['bearer', 'preview-header'] as const) {
      await using others = await startSides()
      warned(others, by)
      assert.equal((await visit(others, { headers: browser })).text, 'hello from inside')
    }
  })

  test('if a preview has no warning, a POST that accepts the warning gets no cookie from the gate', async () => {
    await using sides = await startSides()
    const answer = await visit(sides, { method: 'POST', path: '/?ALCOVE_ACCEPT_PREVIEW=true' })
    assert.deepEqual([answer.status, answer.headers['set-cookie']], [200, undefined])
  })
})
