import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { decodeJwt } from 'jose'
import { type Browser, formOf, openBrowser, type Page } from '#test/control/browser.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { userId } from '#test/control/people.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { setPassword } from './passwords.ts'

const { publicUrl } = testSettings
const dashboard = `${publicUrl}/dashboard/`
const password = 'correct horse battery staple'
const owner = 'owner@example.com'
const ownIssuer = { settings: { identity: testSettings.identity } }

suite('one-time links', () => {
  let app: TestControl
  let base: string

  before(async () => {
    app = await startControl(ownIssuer)
    base = await app.listen()
    await setPassword(app.database.sql, userId('owner'), password, app.clock.now())
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const make = async (email = owner): Promise<string> => {
    const { status, body } = await app.as('admin').post('/admin/users/link', { email })
    assert.equal(status, 200, JSON.stringify(body))
    const [, token = ''] = /^http:\/\/control\.test:3000\/dashboard\/#link=([\w-]{43})$/.exec(body.url) ?? []
    assert.notEqual(token, '', body.url)
    return token
  }

  const verifier = randomBytes(32).toString('base64url')
  const authorizeUrl = (changes: Record<string, string> = {}) =>
    `${publicUrl}/oidc/auth?${new URLSearchParams({
      client_id: 'alcove',
      response_type: 'code',
      redirect_uri: dashboard,
      scope: 'openid profile email offline_access',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...changes,
    })}`
  const isBack = (url: string) => url.startsWith(dashboard)
  /** Opens a one-time link as the dashboard does: the browser goes to the issuer with the token of the link. */
  const open = async (browser: Browser, link: string, changes: Record<string, string> = {}): Promise<Page> =>
    await browser.follow(await browser.get(authorizeUrl({ link, ...changes })), isBack)
  const isSignedIn = ({ location }: Page) => location?.startsWith(`${dashboard}?code=`) ?? false

  /** Returns the user who has signed in, by exchanging the authorization code in the URL of `page` for a token. */
  const userOf = async ({ location = '' }: Page): Promise<string | undefined> => {
    const code = new URL(location).searchParams.get('code') ?? ''
    const fields = { grant_type: 'authorization_code', client_id: 'alcove', redirect_uri: dashboard }
    const body = new URLSearchParams({ ...fields, code, code_verifier: verifier })
    const reply = await fetch(`${base}/oidc/token`, { method: 'POST', body })
    return decodeJwt(((await reply.json()) as { access_token: string }).access_token).sub
  }

  test('a one-time link signs in its user without a page; if the link is used again, a sign-in form is shown', async () => {
    const link = await make()
    const browser = openBrowser(base)
    const page = await open(browser, link)
    assert.ok(isSignedIn(page), page.html)
    assert.equal(await userOf(page), userId('owner'))
    // The browser is still signed in, and now has the cookie of a known browser.
    assert.ok(isSignedIn(await browser.follow(await browser.get(authorizeUrl({ prompt: 'none' })), isBack)))
    assert.ok(browser.cookies.has('alcove_browser'))
    const other = openBrowser(base)
    const again = await open(other, link)
    assert.equal(again.status, 401)
    assert.match(again.html, /This link was already used, or has expired/)
    const filled = await other.post(formOf(again).action, { email: owner, password })
    assert.ok(isSignedIn(await other.follow(filled, isBack)))
  })

  test('if 20 browsers open the same one-time link at the same time, exactly one browser is signed in', async () => {
    const link = await make()
    // Each browser has its own IP address, so that no rate limit changes the result.
    const browsers = Array.from({ length: 20 }, (_, n) => openBrowser(base, `127.7.${n}.1`))
    const forms = await Promise.all(browsers.map((browser) => browser.get(authorizeUrl({ link }))))
    const pages = await Promise.all(
      browsers.map(async (browser, n) => await browser.follow(await browser.get(forms[n]!.location!), isBack)),
    )
    assert.equal(pages.filter(isSignedIn).length, 1)
    assert.equal(pages.filter(({ status }) => status === 401).length, 19)
  })

  test('a one-time link becomes invalid after 24 hours, or if its user is deleted or gets a new link', async () => {
    const refused = async (link: string) => (await open(openBrowser(base), link)).status === 401
    const first = await make()
    const second = await make()
    assert.ok(await refused(first))
    app.clock.advance({ hours: 24 })
    assert.ok(await refused(second))
    const link = await make('member@example.com')
    await app.database.sql`delete from users where id = ${userId('member')}`
    assert.ok(await refused(link))
    assert.ok(isSignedIn(await open(openBrowser(base), await make())))
  })

  test('a one-time link signs in its user, and signs out another user of the same browser', async () => {
    const browser = openBrowser(base)
    assert.equal(await userOf(await open(browser, await make('stranger@example.com'))), userId('stranger'))
    assert.equal(await userOf(await open(browser, await make())), userId('owner'))
    const now = await browser.follow(await browser.get(authorizeUrl({ prompt: 'none' })), isBack)
    assert.equal(await userOf(now), userId('owner'))
    // Signs in another user with a password. That user replaces the user whom the one-time link has signed in.
    assert.equal(await userOf(await open(browser, await make('stranger@example.com'))), userId('stranger'))
    const form = await browser.follow(await browser.get(authorizeUrl({ prompt: 'login' })))
    const filled = await browser.follow(await browser.post(formOf(form).action, { email: owner, password }), isBack)
    assert.equal(await userOf(filled), userId('owner'))
  })

  test('a one-time link stays usable after a sign-in with `prompt=none` or a HEAD request for its page', async () => {
    const link = await make()
    const silent = await open(openBrowser(base), link, { prompt: 'none' })
    assert.match(silent.location ?? '', /error=login_required/)
    const browser = openBrowser(base)
    const { location = '' } = await browser.get(authorizeUrl({ link }))
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const head = await fetch(location.replace(publicUrl, base), { method: 'HEAD', headers: { cookie } })
    assert.equal(head.status, 200)
    assert.ok(isSignedIn(await browser.follow(await browser.get(location), isBack)))
  })

  test('opening an unknown one-time link to sign in counts as a wrong password from the caller’s IP address', async () => {
    const address = '127.8.0.1'
    const random = () => randomBytes(32).toString('base64url')
    for (const link of [
      '',
      'x',
      '\u0000',
      "'; drop table users",
      'ä'.repeat(200),
      ...Array.from({ length: 15 }, random),
    ]) {
      const { status } = await open(openBrowser(base, address), link)
      assert.ok(status === 401 || (link === '' && status === 200), `${JSON.stringify(link)}: ${status}`)
    }
    const last = await open(openBrowser(base, address), random())
    // The loop above opened 20 links, but the empty link does not count as an attempt. So `last` is the 20th wrong attempt, which
    // is still allowed.
    assert.equal(last.status, 401)
    const over = await open(openBrowser(base, address), await make())
    assert.equal(over.status, 429)
    assert.ok(Number(over.headers.get('retry-after')) > 0)
    assert.match(over.html, /Too many attempts/)
  })

  test('the audit log names who made a one-time link and who used it; only a hash of the link is stored', async () => {
    const link = await make()
    assert.ok(isSignedIn(await open(openBrowser(base), link)))
    const rows = await app.database.sql`
      select action, actor_id, credential, targets, params::text as params
      from audit_log where action like '%/users/link' or credential = 'link' order by id desc limit 2`
    assert.deepEqual(
      rows.map(({ action, actor_id: actor, credential }) => [action, actor === userId('owner'), credential]),
      [
        ['GET /oidc/interaction', true, 'link'],
        ['POST /admin/users/link', false, 'api_key'],
      ],
    )
    assert.ok(!JSON.stringify(rows).includes(link))
    const unused = await make()
    const stored = await app.database.sql<{ hash: string }[]>`select hash from sign_in_links`
    assert.ok(stored.length > 0 && stored.every(({ hash }) => hash !== unused && /^[0-9a-f]{64}$/.test(hash)))
  })

  test('POST /admin/users/link answers 404 for an unknown address, and 409 if another issuer is configured', async () => {
    const post = (other: TestControl, email: string) => other.as('admin').post('/admin/users/link', { email })
    assert.equal((await post(app, 'nobody@example.com')).status, 404)
    assert.equal((await app.as('owner').post('/admin/users/link', { email: owner })).status, 403)
    await using elsewhere = await startControl()
    const { status, body } = await post(elsewhere, owner)
    assert.equal(status, 409)
    assert.match(body.message, /ALCOVE_OIDC_ISSUER/)
  })
})
