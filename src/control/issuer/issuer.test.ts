import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { createLog } from '#src/kit/log.ts'
import { type Browser, formOf, openBrowser, type Page } from '#test/control/browser.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { userId } from '#test/control/people.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { setPassword } from './passwords.ts'

const { publicUrl } = testSettings
const issuer = `${publicUrl}/oidc`
const password = 'correct horse battery staple'
const redirect = `${publicUrl}/`

let app: TestControl
let base: string

const startPkce = () => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

const authorizeUrl = (challenge: string, changes: Record<string, string | undefined> = {}) => {
  const asked = {
    client_id: 'alcove',
    response_type: 'code',
    redirect_uri: redirect,
    scope: 'openid profile email offline_access',
    prompt: 'consent',
    state: 'state-1',
    nonce: 'nonce-1',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...changes,
  }
  const given = Object.entries(asked).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `${issuer}/auth?${new URLSearchParams(given)}`
}

const isBack = (url: string) => url.startsWith(`${redirect}?`)

const fillIn = (browser: Browser, form: Page, email: string, given = password, headers = {}) =>
  browser.post(formOf(form).action, { email, password: given }, headers)

/** Signs in with a browser and returns the authorization code for the client. */
const getCode = async (browser: Browser, challenge: string, email = 'owner@example.com') => {
  const form = await browser.follow(await browser.get(authorizeUrl(challenge, { prompt: undefined })))
  assert.equal(form.status, 200, form.html)
  const back = await browser.follow(await fillIn(browser, form, email), isBack)
  assert.ok(back.location && isBack(back.location), `${back.status} ${back.html}`)
  return new URL(back.location).searchParams
}

const tokens = async (fields: Record<string, string>) => {
  const reply = await fetch(`${base}/oidc/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ client_id: 'alcove', ...fields }).toString(),
  })
  return { status: reply.status, body: (await reply.json()) as Record<string, string> }
}

const exchange = (code: string, verifier: string) =>
  tokens({ grant_type: 'authorization_code', code, redirect_uri: redirect, code_verifier: verifier })

const statusWith = async (token: string) => (await app.with(token).get('/users/me')).status

suite('signing in at the embedded issuer', () => {
  before(async () => {
    app = await startControl({ settings: { identity: testSettings.identity } })
    base = await app.listen()
    await setPassword(app.database.sql, userId('owner'), password, app.clock.now())
    await setPassword(app.database.sql, userId('member'), password, app.clock.now())
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  test('GET /config returns the configured URL of the embedded issuer, whatever host the request names', async () => {
    const { body } = await app.as('nobody').get('/config')
    assert.deepEqual(body.oidc, { issuer, clientId: 'alcove', audience: 'alcove' })
    const reply = await fetch(`${base}/oidc/.well-known/openid-configuration`, {
      headers: { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' },
    })
    const found = (await reply.json()) as Record<string, string>
    assert.equal(found['issuer'], issuer)
    assert.equal(found['token_endpoint'], `${issuer}/token`)
    assert.ok(!JSON.stringify(found).includes('evil'))
    const keys = (await (await fetch(`${base}/oidc/jwks`)).json()) as { keys: Record<string, string>[] }
    assert.ok(keys.keys.length > 0 && keys.keys.every((key) => key['d'] === undefined && key['p'] === undefined))
  })

  test('an authorization code with PKCE gives an RS256 JWT, with which the user can call the API', async () => {
    const { verifier, challenge } = startPkce()
    const params = await getCode(openBrowser(base), challenge)
    assert.equal(params.get('state'), 'state-1')
    const { status, body } = await exchange(params.get('code')!, verifier)
    assert.equal(status, 200, JSON.stringify(body))
    const access = body['access_token']!
    assert.deepEqual([decodeProtectedHeader(access).alg, decodeProtectedHeader(access).typ], ['RS256', 'at+jwt'])
    const { iss, aud, sub } = decodeJwt(access)
    assert.deepEqual({ iss, aud, sub }, { iss: issuer, aud: 'alcove', sub: userId('owner') })
    const me = await app.with(access).get('/users/me')
    assert.deepEqual([me.status, me.body.id], [200, userId('owner')])
    assert.equal(decodeJwt(body['id_token']!)['nonce'], 'nonce-1')
    // The API refuses an ID token, although it has the same issuer, audience and signing key as an access token.
    assert.equal(await statusWith(body['id_token']!), 401)
  })

  test('the embedded issuer may redirect to the dashboard after a sign-in and after a sign-out', async () => {
    const { verifier, challenge } = startPkce()
    const dashboard = `${publicUrl}/dashboard/`
    const browser = openBrowser(base)
    const isThere = (url: string) => url.startsWith(dashboard)
    const form = await browser.follow(
      await browser.get(authorizeUrl(challenge, { redirect_uri: dashboard, prompt: undefined })),
    )
    const back = await browser.follow(await fillIn(browser, form, 'owner@example.com'), isThere)
    const code = new URL(back.location ?? '').searchParams.get('code') ?? ''
    const fields = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: dashboard }
    const { status, body } = await tokens(fields)
    assert.equal(status, 200, JSON.stringify(body))
    // `prompt=none` forbids a sign-in page. This browser gets a new code without such a page, because its session still lasts.
    const silent = authorizeUrl(challenge, { redirect_uri: dashboard, prompt: 'none' })
    assert.match((await browser.get(silent)).location ?? '', /\/dashboard\/\?code=/)
    const leave = new URLSearchParams({ id_token_hint: body['id_token']!, post_logout_redirect_uri: dashboard })
    const asked = await browser.get(`${issuer}/session/end?${leave}`)
    const { action, fields: hidden } = formOf(asked)
    const left = await browser.post(action, { ...hidden, logout: 'yes' })
    assert.ok(left.location && isThere(left.location), `${left.status} ${left.html}`)
    assert.match((await browser.get(silent)).location ?? '', /\/dashboard\/\?error=login_required/)
  })

  test('an authorization code works once; a second use revokes the tokens that the first use returned', async () => {
    const { verifier, challenge } = startPkce()
    const code = (await getCode(openBrowser(base), challenge)).get('code')!
    const first = await exchange(code, verifier)
    const second = await exchange(code, verifier)
    assert.deepEqual([first.status, second.status, second.body['error']], [200, 400, 'invalid_grant'])
    const refresh = first.body['refresh_token']!
    assert.equal((await tokens({ grant_type: 'refresh_token', refresh_token: refresh })).status, 400)
  })

  test('if one authorization code is used ten times at the same time, at most one call gets tokens', async () => {
    const { verifier, challenge } = startPkce()
    const code = (await getCode(openBrowser(base), challenge)).get('code')!
    const replies = await Promise.all(Array.from({ length: 10 }, () => exchange(code, verifier)))
    assert.ok(replies.filter(({ status }) => status === 200).length <= 1)
    assert.ok(replies.every(({ status }) => status === 200 || status === 400))
  })

  test('an authorization code with a missing or wrong PKCE verifier, or a wrong redirect URI, answers 400', async () => {
    const { verifier, challenge } = startPkce()
    for (const fields of [
      { code_verifier: startPkce().verifier, redirect_uri: redirect },
      { redirect_uri: redirect },
      { code_verifier: verifier, redirect_uri: 'https://evil.example/' },
    ]) {
      const code = (await getCode(openBrowser(base), challenge)).get('code')!
      assert.equal((await tokens({ grant_type: 'authorization_code', code, ...fields })).status, 400)
    }
  })

  test('a refresh token works once; a second use revokes all tokens that came from that refresh token', async () => {
    const { verifier, challenge } = startPkce()
    const first = await exchange((await getCode(openBrowser(base), challenge)).get('code')!, verifier)
    const refresh = (token: string) => tokens({ grant_type: 'refresh_token', refresh_token: token })
    const second = await refresh(first.body['refresh_token']!)
    assert.equal(second.status, 200)
    assert.notEqual(second.body['refresh_token'], first.body['refresh_token'])
    assert.equal(await statusWith(second.body['access_token']!), 200)
    assert.equal((await refresh(first.body['refresh_token']!)).status, 400)
    assert.equal((await refresh(second.body['refresh_token']!)).status, 400)
  })

  test('a sign-in with an unknown redirect URI, even a similar one, shows an error page without a redirect', async () => {
    const { challenge } = startPkce()
    for (const address of [
      'https://evil.example/',
      `${publicUrl}.evil.example/`,
      `${publicUrl}@evil.example/`,
      `${redirect}../x`,
      `${redirect}?x=1`,
      '//evil.example/',
      'javascript:alert(1)',
    ]) {
      const page = await openBrowser(base).get(authorizeUrl(challenge, { redirect_uri: address }))
      assert.deepEqual([page.status, page.location], [400, undefined], address)
    }
    const loggedOut = await openBrowser(base).get(
      `${issuer}/session/end?client_id=alcove&post_logout_redirect_uri=https://evil.example/`,
    )
    assert.deepEqual([loggedOut.status, loggedOut.location], [400, undefined])
  })

  test('the issuer refuses requests without PKCE, with plain PKCE, by implicit flow, or of unknown clients', async () => {
    const { challenge } = startPkce()
    for (const change of [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { response_type: 'id_token' },
      { response_type: 'token' },
      { client_id: 'another' },
    ]) {
      const page = await openBrowser(base).get(authorizeUrl(challenge, change))
      const error =
        page.location === undefined ? page.status : new URL(page.location).search + new URL(page.location).hash
      assert.ok(error === 400 || String(error).includes('error='), JSON.stringify([change, page.status, page.location]))
    }
  })

  test('a wrong password and an unknown e-mail address get the same 401 page, which escapes the address', async () => {
    const { challenge } = startPkce()
    const browser = openBrowser(base)
    const form = await browser.follow(await browser.get(authorizeUrl(challenge)))
    const wrong = await fillIn(browser, form, 'owner@example.com', 'wrong')
    const nobody = await fillIn(browser, form, '"><script>x</script>@example.com', 'wrong')
    const without = await fillIn(browser, form, 'viewer@example.com')
    assert.deepEqual([wrong.status, nobody.status, without.status], [401, 401, 401])
    const said = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1]
    assert.deepEqual([said(nobody), said(without)], [said(wrong), said(wrong)])
    assert.ok(!nobody.html.includes('<script'))
    for (const fields of [
      { email: '', password: 'x' },
      { email: 'a@example.com', password: '' },
      { email: 'a'.repeat(255), password: 'x' },
    ]) {
      assert.equal((await browser.post(formOf(form).action, fields)).status, 400)
    }
  })

  test('sign-in pages run no scripts, cannot be framed or cached, and their cookies are hidden from scripts', async () => {
    const { challenge } = startPkce()
    const browser = openBrowser(base)
    const begun = await browser.get(authorizeUrl(challenge))
    for (const cookie of begun.headers.getSetCookie()) {
      assert.match(cookie, /httponly/i)
      assert.match(cookie, /samesite=lax/i)
      assert.match(cookie, /path=\/oidc/i)
      assert.ok(!/domain=/i.test(cookie), cookie)
    }
    const form = await browser.follow(begun)
    assert.ok(!/<script|\son\w+=/i.test(form.html))
    const policy = form.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.equal(form.headers.get('cache-control'), 'no-store')
    // With `no-referrer`, browsers would send `Origin: null` with the form. The issuer would refuse the form as one of another
    // site.
    assert.equal(form.headers.get('referrer-policy'), 'same-origin')
  })

  test('a sign-in form is accepted only from the browser that received it, and only from the issuer’s page', async () => {
    const { challenge } = startPkce()
    const victim = openBrowser(base)
    const attacker = openBrowser(base)
    const form = await attacker.follow(await attacker.get(authorizeUrl(challenge)))
    // Sends the attacker's form twice from the browser of the victim. Before the second time, that browser has received its own
    // form.
    assert.equal((await fillIn(victim, form, 'owner@example.com')).status, 400)
    const own = await victim.follow(await victim.get(authorizeUrl(challenge)))
    assert.equal((await fillIn(victim, form, 'owner@example.com')).status, 400)
    const elsewhere = await fillIn(victim, own, 'owner@example.com', password, { origin: 'https://evil.example' })
    assert.equal(elsewhere.status, 400)
    assert.equal((await fillIn(victim, own, 'owner@example.com', password, { origin: publicUrl })).status, 303)
  })

  test('a device is signed in only after a user has confirmed the code that the device shows', async () => {
    const post = async (path: string, fields: Record<string, string>) => {
      const reply = await fetch(`${base}/oidc${path}`, { method: 'POST', body: new URLSearchParams(fields) })
      return { status: reply.status, body: (await reply.json()) as Record<string, string> }
    }
    const started = await post('/device/auth', { client_id: 'alcove', scope: 'openid offline_access' })
    assert.equal(started.status, 200, JSON.stringify(started.body))
    const { device_code: deviceCode = '', user_code: userCode = '' } = started.body
    assert.equal(started.body['verification_uri'], `${issuer}/device`)
    const poll = () => tokens({ grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: deviceCode })
    assert.equal((await poll()).body['error'], 'authorization_pending')

    const browser = openBrowser(base)
    const asked = await browser.get(`${issuer}/device`)
    assert.ok(!/<script|\son\w+=/i.test(asked.html))
    const wrong = await browser.post(formOf(asked).action, { ...formOf(asked).fields, user_code: 'AAAA-AAAA' })
    assert.match(wrong.html, /This code is wrong/)
    const again = await browser.get(`${issuer}/device`)
    const confirm = await browser.post(formOf(again).action, { ...formOf(again).fields, user_code: userCode })
    assert.ok(confirm.html.includes(userCode), confirm.html)
    const forged = await openBrowser(base).post(formOf(confirm).action, formOf(confirm).fields)
    assert.equal(forged.status, 400)
    const form = await browser.follow(await browser.post(formOf(confirm).action, formOf(confirm).fields))
    const done = await browser.follow(await fillIn(browser, form, 'member@example.com'))
    assert.match(done.html, /device is signed in/)

    const { status, body } = await poll()
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await app.with(body['access_token']!).get('/users/me')).body.id, userId('member'))
    assert.ok(body['refresh_token'])
    assert.equal((await poll()).status, 400)
  })

  test('what the database stores for sign-ins cannot be used to sign in', async () => {
    const { verifier, challenge } = startPkce()
    const code = (await getCode(openBrowser(base), challenge)).get('code')!
    const { body } = await exchange(code, verifier)
    const rows = await app.database.sql`select t::text as text from issuer_records t
      union all select t::text from issuer_keys t union all select t::text from user_passwords t`
    const text = rows.map((row) => row['text']).join('\n')
    for (const secret of [code, body['refresh_token']!, password]) assert.ok(!text.includes(secret))
    assert.match(text, /\$argon2id\$/)
    assert.ok(!/"d":|"kty"/.test(text))
  })

  test('after the signing key is replaced, new tokens use the new key; tokens of the old key stay valid', async () => {
    const { verifier, challenge } = startPkce()
    const before = await exchange((await getCode(openBrowser(base), challenge)).get('code')!, verifier)
    await app.database.sql`update issuer_keys set created_at = created_at - interval '31 days' where kind = 'signing'`
    await app.app.issuer!.sweep()
    const refreshed = await tokens({ grant_type: 'refresh_token', refresh_token: before.body['refresh_token']! })
    assert.equal(refreshed.status, 200)
    const kids = [before, refreshed].map(({ body }) => decodeProtectedHeader(body['access_token']!).kid)
    assert.notEqual(kids[0], kids[1])
    assert.equal(await statusWith(refreshed.body['access_token']!), 200)
    app.app.sandboxes.callers.forget()
    assert.equal(await statusWith(before.body['access_token']!), 200)
  })

  test('the token of a deleted user gets 401', async () => {
    const { verifier, challenge } = startPkce()
    const { body } = await exchange(
      (await getCode(openBrowser(base), challenge, 'member@example.com')).get('code')!,
      verifier,
    )
    assert.equal(await statusWith(body['access_token']!), 200)
    await app.database.sql`delete from users where id = ${userId('member')}`
    app.app.sandboxes.callers.forget()
    assert.equal(await statusWith(body['access_token']!), 401)
  })

  test('an issuer session lasts minutes if a browser has only opened the sign-in form, hours after a sign-in', async () => {
    const { sql } = app.database
    const longest = async () => {
      const [row] = await sql<{ minutes: number }[]>`
        select extract(epoch from max(expires_at) - now())::float / 60 as minutes
        from issuer_records where model = 'Session'`
      return row!.minutes
    }
    await sql`delete from issuer_records where model = 'Session'`
    const browser = openBrowser(base)
    await browser.get(`${issuer}/device`)
    assert.ok((await longest()) <= 15)
    await getCode(browser, startPkce().challenge)
    assert.ok((await longest()) > 11 * 60)
  })

  test('what the issuer stores for a device sign-in is not larger if the device sends a long User-Agent', async () => {
    const { sql } = app.database
    const lengthFor = async (agent: string) => {
      await sql`delete from issuer_records where model = 'DeviceCode'`
      const body = new URLSearchParams({ client_id: 'alcove' })
      const reply = await fetch(`${base}/oidc/device/auth`, { method: 'POST', headers: { 'user-agent': agent }, body })
      assert.equal(reply.status, 200)
      const [row] = await sql<{ length: number }[]>`
        select length(secret) from issuer_records where model = 'DeviceCode'`
      return row!.length
    }
    const short = await lengthFor('x')
    assert.ok((await lengthFor('x'.repeat(8000))) < short + 1000)
  })

  test('an IP address gets 429 for the 301st sign-in begun in a minute, but can finish its earlier sign-ins', async () => {
    await using other = await startControl({ settings: { identity: testSettings.identity } })
    const ask = async (method: 'GET' | 'POST', path: string) => {
      const { statusCode, headers } = await other.app.server.inject({ method, url: `/oidc/${path}` })
      return { status: statusCode, retryAfter: headers['retry-after'] }
    }
    for (let n = 0; n < 300; n += 1) assert.notEqual((await ask('GET', 'auth')).status, 429)
    for (const path of ['auth', 'device', 'device/auth', 'session/end']) {
      const { status, retryAfter } = await ask('GET', path)
      assert.deepEqual([status, Number(retryAfter) > 0], [429, true])
    }
    assert.deepEqual([(await ask('POST', 'token')).status, (await ask('GET', 'jwks')).status], [400, 200])
    assert.equal((await ask('GET', 'interaction/none')).status, 400)
  })

  const begin = async (browser: Browser) => browser.follow(await browser.get(authorizeUrl(startPkce().challenge)))

  const tryAs = async (browser: Browser, form: Page, email: string, times: number, given: string) => {
    const statuses: number[] = []
    for (let n = 0; n < times; n += 1) statuses.push((await fillIn(browser, form, email, given)).status)
    return statuses
  }

  test('wrong passwords from other IP addresses do not stop a user from signing in, even in a new browser', async () => {
    const email = 'viewer@example.com'
    await setPassword(app.database.sql, userId('viewer'), password, app.clock.now())
    const known = openBrowser(base)
    await getCode(known, startPkce().challenge, email)
    for (const address of ['11', '12', '13', '14', '15', '16'].map((last) => `127.0.0.${last}`)) {
      const stranger = openBrowser(base, address)
      await tryAs(stranger, await begin(stranger), email, 12, 'wrong')
    }
    const fresh = openBrowser(base, '127.0.0.20')
    assert.deepEqual(await tryAs(fresh, await begin(fresh), email, 1, 'mistyped'), [401])
    assert.deepEqual(await tryAs(fresh, await begin(fresh), email, 1, password), [303])
    // The IP address 127.0.0.11 has no attempts left for this user. In a known browser (known-browsers.ts), the user can still
    // sign in from this address.
    const neighbour = openBrowser(base, '127.0.0.11')
    neighbour.cookies.set('alcove_browser', known.cookies.get('alcove_browser')!)
    assert.deepEqual(await tryAs(neighbour, await begin(neighbour), email, 1, password), [303])
    const forger = openBrowser(base, '127.0.0.11')
    forger.cookies.set('alcove_browser', `${known.cookies.get('alcove_browser')!.slice(0, -9)}AAAAAAAAA`)
    assert.deepEqual(await tryAs(forger, await begin(forger), email, 1, password), [429])
    const other = openBrowser(base, '127.0.0.11')
    other.cookies.set('alcove_browser', known.cookies.get('alcove_browser')!)
    const strange = await tryAs(other, await begin(other), 'owner@example.com', 11, 'wrong')
    assert.equal(strange.at(-1), 429, 'a browser is known for one account only')
  })

  test('a failed sign-in gets the same answer if the account exists, has no password, or does not exist', async () => {
    await using fresh = await startControl({ settings: { identity: testSettings.identity } })
    const at = await fresh.listen()
    await setPassword(fresh.database.sql, userId('owner'), password, fresh.clock.now())
    const seen: { index: number; status: number; words: string }[] = []
    const addresses = ['owner@example.com', 'admin@example.com', 'nobody@example.com'] as const
    for (const [index, email] of addresses.entries()) {
      // Seven IP addresses send so many wrong passwords for one e-mail address that this e-mail address counts as under
      // attack.
      for (let n = 0; n < 7; n += 1) {
        const stranger = openBrowser(at, `127.0.${index + 1}.${n + 1}`)
        const form = await begin(stranger)
        for (let m = 0; m < (n < 6 ? 10 : 5); m += 1) {
          const { status, html } = await fillIn(stranger, form, email, 'wrong password')
          const words = html.replaceAll(email, 'EMAIL').replace(/interaction\/[\w-]+/, 'interaction/UID')
          seen.push({ index, status, words })
        }
      }
    }
    const answersTo = (wanted: number) =>
      seen.filter(({ index }) => index === wanted).map(({ status, words }) => ({ status, words }))
    assert.deepEqual(answersTo(1), answersTo(0))
    assert.deepEqual(answersTo(2), answersTo(0))
    const last = answersTo(0).slice(-5)
    assert.deepEqual(
      last.map(({ status }) => status),
      [401, 401, 401, 429, 429],
    )
  })

  test('a sign-in with an e-mail address that contains a NUL character answers 400', async () => {
    const browser = openBrowser(base, '127.0.0.30')
    assert.equal((await fillIn(browser, await begin(browser), 'a\0@example.com')).status, 400)
  })

  // Must be the last test of this suite: after it, the IP address from which most tests sign in has no attempts left.
  test('after twenty wrong passwords from one IP address, a sign-in answers 429', async () => {
    const { challenge } = startPkce()
    const browser = openBrowser(base)
    const form = await browser.follow(await browser.get(authorizeUrl(challenge)))
    const statuses: number[] = []
    for (let n = 0; n < 21; n += 1) statuses.push((await fillIn(browser, form, `no${n}@example.com`, 'wrong')).status)
    assert.equal(statuses.at(-1), 429)
    assert.equal((await fillIn(browser, form, 'owner@example.com')).status, 429)
  })
})

test('if the operator configures another issuer, the embedded issuer’s paths answer 404', async () => {
  await using other = await startControl()
  const reply = await other.app.server.inject({ method: 'GET', url: '/oidc/.well-known/openid-configuration' })
  assert.equal(reply.statusCode, 404)
})

test('malformed sign-in requests are logged only at level debug', async () => {
  const lines: { level: number; msg: string }[] = []
  const log = createLog('control', 'debug', { write: (line) => void lines.push(JSON.parse(line)) })
  await using own = await startControl({ log, settings: { identity: testSettings.identity } })
  const url = await own.listen()
  for (const method of ['GET', 'POST']) {
    const { status } = await fetch(`${url}/oidc/interaction/nobody-began-this`, { method })
    assert.equal(status, 400)
  }
  const told = lines.filter(({ msg }) => msg === 'a step of signing in was refused')
  assert.deepEqual(
    told.map(({ level }) => level),
    [20, 20],
  )
})
