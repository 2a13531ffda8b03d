// Tests single sign-on with a real identity provider in another process, and a simulated browser with cookies.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, before, beforeEach, suite, test } from 'node:test'
import { organizations, userId } from '#test/control/people.ts'
import { Browser, type Page } from '#test/sso/browser.ts'
import { developer, type SsoControl, startSso } from '#test/sso/organization.ts'
import { startProvider, type TestProvider } from '#test/sso/provider.ts'

let provider: TestProvider

const ada = { email: 'ada@example.com', email_verified: true, name: 'Ada' }

before(async () => {
  provider = await startProvider()
})
after(() => provider?.stop())
beforeEach(async () => {
  await provider.setClaimsInToken(true)
  await provider.setAccounts({ ada })
  await provider.takeAsked()
})

const errorOf = ({ status, body }: Page) => [status, body?.code]

const countUsers = async ({ app }: SsoControl): Promise<number> => {
  const [row] = await app.database.sql<[{ count: number }]>`select count(*) from users`
  return row.count
}

/** Checks that a sign-in fails with this code and that no user was made. */
const refused = async (sso: SsoControl, login: string, code: string, status = 403) => {
  const users = await countUsers(sso)
  assert.deepEqual(errorOf(await sso.signIn(login)), [status, code])
  assert.equal(await countUsers(sso), users)
}

suite('GET /auth/sso/org/{organizationId}', () => {
  test('GET /auth/sso/org/{organizationId} redirects to the provider with state, nonce and PKCE', async () => {
    await using sso = await startSso(provider)
    const { status, location, headers } = await new Browser(sso.app).go(sso.startUrl)
    assert.equal(status, 302)
    const { origin, pathname, searchParams } = new URL(location!)
    assert.equal(`${origin}${pathname}`, `${provider.issuer}/auth`)
    const { state, nonce, code_challenge, ...plain } = Object.fromEntries(searchParams)
    assert.deepEqual(plain, {
      client_id: provider.setup.clientId,
      redirect_uri: 'http://control.test:3000/api/auth/sso/callback',
      response_type: 'code',
      scope: 'openid email profile',
      code_challenge_method: 'S256',
    })
    for (const secret of [state, nonce, code_challenge]) assert.match(secret!, /^[\w-]{43}$/)
    assert.deepEqual([headers['cache-control'], headers['referrer-policy']], ['no-store', 'no-referrer'])
  })

  test('the sign-in cookie is HttpOnly and SameSite=Lax, and over https also Secure with a __Host- name', async () => {
    const cookieOf = async (publicUrl: string) => {
      await using sso = await startSso(provider, {}, { settings: { publicUrl } })
      return String((await new Browser(sso.app).go(sso.startUrl)).headers['set-cookie'])
    }
    const plain = await cookieOf('http://control.test:3000')
    assert.match(plain, /^alcove-sso=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/)
    const secure = await cookieOf('https://control.test')
    assert.match(secure, /^__Host-alcove-sso=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/)
  })

  test('query parameters of a sign-in cannot change where the browser is sent', async () => {
    await using sso = await startSso(provider)
    const evil = 'redirect_uri=https://evil.example&returnTo=https://evil.example&scope=openid+admin'
    const { location } = await new Browser(sso.app).go(`${sso.startUrl}?${evil}`)
    assert.doesNotMatch(location!, /evil|admin/)
  })

  test('GET /auth/sso/org/{organizationId} answers the same 404 for an organization that is unknown or has no provider', async () => {
    await using sso = await startSso(provider)
    const ask = (id: string) => sso.app.as('nobody').get(`/auth/sso/org/${id}`)
    const [without, none] = [await ask(organizations.theirs), await ask('no-such')]
    assert.equal(without.status, 404)
    assert.deepEqual([none.status, none.body.message], [404, without.body.message])
  })

  test('a sign-in uses the identity provider that the query names, or else the oldest enabled provider', async () => {
    await using other = await startProvider({ clientId: 'other' })
    await using sso = await startSso(provider)
    const path = `/organizations/${organizations.ours}/identity-providers`
    const { clientId, clientSecret } = other.setup
    const second = await sso.app.as('owner').post(path, {
      name: 'Second',
      oidcConfig: { issuerUrl: other.issuer, clientId, clientSecret },
      allowAnyDomain: true,
    })
    // The test's clock stands still, so both providers would have the same time of creation.
    await sso.app.database.sql`
      update identity_providers set created_at = created_at + interval '1 second' where id = ${second.body.id}`
    const browser = new Browser(sso.app)
    const issuerAt = async (url: string) => new URL((await browser.go(url)).location!).origin
    assert.equal(await issuerAt(sso.startUrl), provider.issuer)
    assert.equal(await issuerAt(`${sso.startUrl}?identityProviderId=${second.body.id}`), other.issuer)
    await sso.change({ enabled: false })
    assert.equal(await issuerAt(sso.startUrl), other.issuer)
    assert.equal((await browser.go(`${sso.startUrl}?identityProviderId=no-such`)).status, 404)
  })

  test('GET /auth/sso/org/{organizationId} answers 429 with Retry-After for the 61st request in a minute', async () => {
    await using sso = await startSso(provider)
    const ask = () => sso.app.as('nobody').get('/auth/sso/org/no-such')
    const statuses = new Set<number>()
    for (let asked = 0; asked < 60; asked += 1) statuses.add((await ask()).status)
    assert.deepEqual([...statuses], [404])
    const reply = await ask()
    assert.equal(reply.status, 429)
    assert.match(String(reply.headers['retry-after']), /^\d+$/)
  })
})

suite('a new person', () => {
  test('a person’s first single sign-on makes a user with a verified e-mail address, who is a member', async () => {
    await using sso = await startSso(provider)
    const page = await sso.signIn('ada')
    assert.equal(page.status, 200, page.text)
    const { accessToken, tokenType, userId: id, organizationId, expiresAt } = page.body
    assert.deepEqual([tokenType, organizationId], ['Bearer', organizations.ours])
    assert.ok(new Date(expiresAt) > sso.app.clock.now())
    assert.equal(page.headers['cache-control'], 'no-store')
    const [user] = await sso.app.database
      .sql`select name, email, email_verified, email_verified_by from users where id = ${id}`
    assert.deepEqual(
      { ...user },
      { name: 'Ada', email: 'ada@example.com', email_verified: true, email_verified_by: 'sso' },
    )
    const members = (await sso.app.as('owner').get(`/organizations/${organizations.ours}/users`)).body
    const member = members.find((one: { userId: string }) => one.userId === id)
    assert.deepEqual(
      [member.role, member.assignedRoles.map((role: { id: string }) => role.id)],
      ['member', [developer]],
    )
    const me = await sso.app.with(accessToken).get('/users/me')
    assert.deepEqual([me.status, me.body.id, me.body.email], [200, id, 'ada@example.com'])
    const named = { headers: { 'x-daytona-organization-id': organizations.ours } }
    assert.equal((await sso.app.with(accessToken).get('/sandbox', named)).status, 200)
    assert.equal((await sso.app.with(accessToken).get('/organizations')).body.length, 2)
    assert.equal((await sso.app.with(accessToken).get(`/organizations/${organizations.theirs}/users`)).status, 404)
  })

  test('a first single sign-on makes a member without permissions if the provider has no default roles', async () => {
    await using sso = await startSso(provider, { defaultAssignedRoleIds: [] })
    const { accessToken } = (await sso.signIn('ada')).body
    const named = { headers: { 'x-daytona-organization-id': organizations.ours } }
    assert.equal((await sso.app.with(accessToken).get('/sandbox', named)).status, 200)
    assert.equal((await sso.app.with(accessToken).post('/sandbox', {}, named)).status, 403)
  })

  test('a second single sign-on finds the same user, even if name and e-mail address changed', async () => {
    await using sso = await startSso(provider)
    const first = (await sso.signIn('ada')).body
    const users = await countUsers(sso)
    await provider.setAccounts({ ada: { ...ada, email: 'countess@example.com' } })
    assert.equal((await sso.signIn('ada')).body.userId, first.userId)
    assert.equal(await countUsers(sso), users)
  })

  test('a person who signs in from many browsers at the same time becomes one user', async () => {
    await using sso = await startSso(provider)
    const users = await countUsers(sso)
    const pages = await Promise.all(Array.from({ length: 5 }, () => sso.signIn('ada')))
    assert.deepEqual([...new Set(pages.map(({ status }) => status))], [200])
    assert.equal(new Set(pages.map(({ body }) => body.userId)).size, 1)
    assert.equal(await countUsers(sso), users + 1)
  })

  test('a token of single sign-on expires within an hour; a token with a changed signature gets 401', async () => {
    await using sso = await startSso(provider)
    const { accessToken } = (await sso.signIn('ada')).body
    const [head, payload, signature] = accessToken.split('.')
    const forged = `${head}.${payload}.${signature.slice(0, -4)}AAAA`
    assert.equal((await sso.app.with(forged).get('/users/me')).status, 401)
    sso.app.clock.advance({ minutes: 61 })
    assert.equal((await sso.app.with(accessToken).get('/users/me')).status, 401)
  })
})

suite('every error of a sign-in', () => {
  test('a sign-in fails with missing_email if the provider returns no valid e-mail address', async () => {
    await using sso = await startSso(provider)
    for (const email of [undefined, null, '', 7, 'nobody', 'a@b@c.example', 'a\u0000@example.com']) {
      await provider.setAccounts({ ada: { ...ada, email } })
      await refused(sso, 'ada', 'missing_email')
    }
  })

  test('a sign-in fails with email_not_verified if the token’s email_verified is missing or false', async () => {
    await using sso = await startSso(provider)
    for (const email_verified of [undefined, false, null, 'false', 'yes', 1]) {
      await provider.setAccounts({ ada: { ...ada, email_verified } })
      await refused(sso, 'ada', 'email_not_verified')
    }
  })

  test('with trustEmailVerified, a sign-in succeeds even if email_verified is missing or false', async () => {
    await using sso = await startSso(provider, { trustEmailVerified: true })
    await provider.setAccounts({ ada: { ...ada, email_verified: false }, eve: { email: 'eve@example.com' } })
    assert.equal((await sso.signIn('ada')).status, 200)
    assert.equal((await sso.signIn('eve')).status, 200)
  })

  test('a sign-in with an e-mail domain that the provider does not allow fails with domain_not_allowed', async () => {
    await using sso = await startSso(provider)
    for (const email of [
      'ada@elsewhere.example',
      'ada@sub.example.com',
      'ada@example.com.evil.example',
      'ada@example',
    ]) {
      await provider.setAccounts({ ada: { ...ada, email } })
      await refused(sso, 'ada', 'domain_not_allowed')
    }
    await provider.setAccounts({ ada: { ...ada, email: 'ada@EXAMPLE.com' } })
    assert.equal((await sso.signIn('ada')).status, 200)
    await sso.change({ allowAnyDomain: true })
    await provider.setAccounts({ eve: { ...ada, email: 'eve@elsewhere.example' } })
    assert.equal((await sso.signIn('eve')).status, 200)
  })

  test('SSO fails with provider_disabled if the identity provider is disabled before or during the sign-in', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    await sso.change({ enabled: false })
    assert.deepEqual(errorOf(await browser.go(back)), [403, 'provider_disabled'])
    assert.deepEqual(errorOf(await browser.go(sso.startUrl)), [403, 'provider_disabled'])
    await sso.change({ enabled: true })
    const again = await sso.comeBack('ada', browser)
    sso.app.parts.settings.ssoForAll = false
    assert.deepEqual(errorOf(await browser.go(again)), [403, 'provider_disabled'])
    assert.deepEqual(errorOf(await browser.go(sso.startUrl)), [403, 'provider_disabled'])
  })

  test('SSO fails with provider_unavailable if the identity provider is down before or during the sign-in', async () => {
    const other = await startProvider()
    await other.setAccounts({ ada })
    await using sso = await startSso(other)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    await other.stop()
    assert.deepEqual(errorOf(await browser.go(back)), [502, 'provider_unavailable'])
    assert.deepEqual(errorOf(await browser.go(sso.startUrl)), [502, 'provider_unavailable'])
  })

  test('if a provider has a private IP address, sign-ins fail with provider_unavailable, and no call is made', async () => {
    await using sso = await startSso(provider, {}, { settings: { privateTargets: { check: () => false } } })
    const page = await new Browser(sso.app).go(sso.startUrl)
    assert.deepEqual(errorOf(page), [502, 'provider_unavailable'])
    assert.deepEqual(await provider.takeAsked(), [])
  })

  test('a sign-in fails with access_denied if the provider refuses the person', async () => {
    await using sso = await startSso(provider)
    await refused(sso, 'mallory', 'access_denied')
  })

  test('a first SSO sign-in with the e-mail address of an existing user fails with link_pending', async () => {
    await using sso = await startSso(provider)
    await provider.setAccounts({ member: { email: 'Member@example.com', email_verified: true } })
    await refused(sso, 'member', 'link_pending')
  })
})

suite('GET /auth/sso/callback', () => {
  test('a sign-in’s `state` works once; a second use fails with invalid_state, without asking the provider', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    assert.equal((await browser.go(back)).status, 200)
    await provider.takeAsked()
    assert.deepEqual(errorOf(await browser.go(back)), [400, 'invalid_state'])
    assert.deepEqual(await provider.takeAsked(), [])
  })

  test('a person’s first single sign-on writes one audit row, with the user’s id and e-mail address', async () => {
    await using sso = await startSso(provider)
    for (let time = 0; time < 2; time++) assert.equal((await sso.signIn('ada')).status, 200)
    const entries = await sso.app.database.sql`
      select actor_email, credential, action, status, targets[2] = actor_id as "isThem", client_address <> '' as "isFrom"
      from audit_log where action = 'GET /auth/sso/callback'`
    const told = { actor_email: ada.email, credential: 'sso', action: 'GET /auth/sso/callback', status: 200 }
    assert.deepEqual([...entries], [{ ...told, isThem: true, isFrom: true }])
    const { items } = (await sso.app.as('owner').get(`/audit/organizations/${organizations.ours}`)).body
    assert.deepEqual([items[0].credential, items[0].call], ['sso', told.action])
  })

  test('a sign-in can be completed only in the browser that began it; another browser gets invalid_state', async () => {
    await using sso = await startSso(provider)
    const [browser, victim, third] = [new Browser(sso.app), new Browser(sso.app), new Browser(sso.app)]
    const back = await sso.comeBack('ada', browser)
    assert.deepEqual(errorOf(await victim.go(back)), [400, 'invalid_state'])
    await third.go(sso.startUrl)
    assert.deepEqual(errorOf(await third.go(back)), [400, 'invalid_state'])
    assert.equal((await browser.go(back)).status, 200)
  })

  test('a sign-in fails with invalid_state if the browser sends two cookies with our cookie’s name', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    const { origin } = new URL(back)
    const secret = browser.cookies(origin).get('alcove-sso')
    browser.cookies(origin).set('alcove-sso', `${secret}; alcove-sso=${'x'.repeat(43)}`)
    assert.deepEqual(errorOf(await browser.go(back)), [400, 'invalid_state'])
  })

  test('sign-ins in two tabs of one browser both succeed', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const first = await sso.comeBack('ada', browser)
    const second = await sso.comeBack('ada', browser)
    assert.equal((await browser.go(first)).status, 200)
    assert.equal((await browser.go(second)).status, 200)
  })

  test('a callback whose `state` is older than ten minutes fails with invalid_state', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    sso.app.clock.advance({ minutes: 10 })
    assert.deepEqual(errorOf(await browser.go(back)), [400, 'invalid_state'])
  })

  test('a callback without a known `state` fails with invalid_state; with two `state` parameters it gets 400', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = new URL(await sso.comeBack('ada', browser))
    const at = (search: string) => `${back.origin}${back.pathname}${search}`
    for (const search of ['', '?code=x', '?state=x&code=x', '?state=']) {
      assert.deepEqual(errorOf(await browser.go(at(search))), [400, 'invalid_state'], search)
    }
    assert.equal((await browser.go(`${back.href}&state=${back.searchParams.get('state')}`)).status, 400)
  })

  test('a callback with a forged, an additional or no authorization code fails with invalid_response', async () => {
    await using sso = await startSso(provider)
    for (const change of [
      (url: URL) => url.searchParams.set('code', 'forged'),
      (url: URL) => url.searchParams.append('code', 'second'),
      (url: URL) => url.searchParams.delete('code'),
    ]) {
      const browser = new Browser(sso.app)
      const back = new URL(await sso.comeBack('ada', browser))
      change(back)
      assert.deepEqual(errorOf(await browser.go(back.href)), [400, 'invalid_response'])
    }
  })

  const tampered = async (sso: SsoControl, change: (url: URL) => void) => {
    const browser = new Browser(sso.app)
    const begun = new URL((await browser.go(sso.startUrl)).location!)
    change(begun)
    return errorOf(await browser.go(await browser.signInAt(begun.href, 'ada')))
  }

  test('a sign-in fails with invalid_response if the ID token has another nonce', async () => {
    await using sso = await startSso(provider)
    assert.deepEqual(await tampered(sso, (url) => url.searchParams.set('nonce', 'x'.repeat(43))), [
      400,
      'invalid_response',
    ])
    assert.deepEqual(await tampered(sso, (url) => url.searchParams.delete('nonce')), [400, 'invalid_response'])
  })

  test('a sign-in fails with invalid_response if the code was made for another PKCE challenge', async () => {
    await using sso = await startSso(provider)
    const change = (url: URL) => url.searchParams.set('code_challenge', 'x'.repeat(43))
    assert.deepEqual(await tampered(sso, change), [400, 'invalid_response'])
  })

  test('a callback that names another issuer fails with invalid_response, and no issuer gets the code', async () => {
    await using other = await startProvider()
    await other.setAccounts({ ada })
    await using sso = await startSso(provider)
    for (const issuer of [other.issuer, `${provider.issuer}/`, '', null]) {
      const browser = new Browser(sso.app)
      const back = new URL(await sso.comeBack('ada', browser))
      if (issuer === null) back.searchParams.delete('iss')
      else back.searchParams.set('iss', issuer)
      await provider.takeAsked()
      assert.deepEqual(errorOf(await browser.go(back.href)), [400, 'invalid_response'], String(issuer))
      assert.ok(!(await provider.takeAsked()).includes('/token'))
    }
    // The browser returns with another provider's code and the `state` of our sign-in. A malicious provider could cause that.
    const browser = new Browser(sso.app)
    const begun = new URL((await browser.go(sso.startUrl)).location!)
    const there = await browser.signInAt(`${other.issuer}/auth${begun.search}`, 'ada')
    assert.deepEqual(errorOf(await browser.go(there)), [400, 'invalid_response'])
    assert.ok(!(await other.takeAsked()).includes('/token'))
  })

  test('a sign-in fails with invalid_state if the provider’s issuer is changed during the sign-in', async () => {
    await using other = await startProvider()
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    await sso.change({ oidcConfig: { issuerUrl: other.issuer } })
    assert.deepEqual(errorOf(await browser.go(back)), [400, 'invalid_state'])
    assert.deepEqual(await other.takeAsked(), [])
  })

  test('a sign-in with a wrong client secret fails with invalid_response; replies do not show the secret', async () => {
    await using sso = await startSso(provider)
    await sso.change({ oidcConfig: { clientSecret: 'not-the-secret' } })
    const page = await sso.signIn('ada')
    assert.deepEqual(errorOf(page), [400, 'invalid_response'])
    assert.doesNotMatch(page.text, /not-the-secret/)
  })

  test('GET /auth/sso/callback answers 429 for the 61st request in a minute', async () => {
    await using sso = await startSso(provider)
    for (let asked = 0; asked < 60; asked += 1) await sso.app.as('nobody').get('/auth/sso/callback')
    assert.equal((await sso.app.as('nobody').get('/auth/sso/callback')).status, 429)
  })
})

suite('a sign-in at providers that behave differently', () => {
  test('a sign-in succeeds if the provider replaces its keys before or during the sign-in', async () => {
    await using sso = await startSso(provider)
    const browser = new Browser(sso.app)
    const back = await sso.comeBack('ada', browser)
    await provider.rotate()
    const page = await browser.go(back)
    assert.equal(page.status, 200, page.text)
    const { userId: id } = page.body
    await provider.rotate()
    assert.equal((await sso.signIn('ada')).body.userId, id)
  })

  test('if the ID token has no e-mail address, control reads one from the provider’s userinfo endpoint', async () => {
    await provider.setClaimsInToken(false)
    await using sso = await startSso(provider)
    assert.equal((await sso.signIn('ada')).status, 200)
    assert.ok((await provider.takeAsked()).includes('/me'))
    await provider.setAccounts({ eve: { email: 'eve@example.com' } })
    await refused(sso, 'eve', 'email_not_verified')
  })

  test('control sends the client secret in the body if the identity provider accepts the secret only there', async () => {
    await using other = await startProvider({ authMethod: 'client_secret_post' })
    await other.setAccounts({ ada })
    await using sso = await startSso(other)
    assert.equal((await sso.signIn('ada')).status, 200)
  })
})

suite('the result of a sign-in', () => {
  const dashboardUrl = 'https://dashboard.example/login?from=sso'

  test('a sign-in redirects a browser to the dashboard, with the token or the error in the URL’s fragment', async () => {
    await using sso = await startSso(provider, {}, { settings: { dashboardUrl } })
    const browser = new Browser(sso.app)
    browser.accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const page = await sso.signIn('ada', browser)
    assert.deepEqual([page.status, page.text], [302, ''])
    const [before, hash] = page.location!.split('#')
    assert.equal(before, dashboardUrl)
    const token = new URLSearchParams(hash).get('access_token')!
    assert.equal((await sso.app.with(token).get('/users/me')).body.email, 'ada@example.com')
    await provider.setAccounts({ ada: { ...ada, email: undefined } })
    const failed = await sso.signIn('ada', browser)
    assert.deepEqual([failed.status, failed.location], [302, `${dashboardUrl}&error=missing_email`])
    const evil = await browser.go('http://control.test:3000/api/auth/sso/callback?state=x&error=https://evil.example')
    assert.deepEqual([evil.status, evil.location], [302, `${dashboardUrl}&error=invalid_state`])
  })

  test('after a sign-in, browsers are redirected to this server’s dashboard; callers that want JSON get JSON', async () => {
    await using sso = await startSso(provider)
    const ours = 'http://control.test:3000/dashboard/'
    const browser = new Browser(sso.app)
    browser.accept = 'text/html'
    const page = await sso.signIn('ada', browser)
    assert.deepEqual([page.status, page.location?.split('#')[0]], [302, ours])
    // The dashboard accepts the token only with this cookie, so nobody can sign in another person with a URL.
    const token = new URLSearchParams(page.location!.split('#')[1]).get('access_token')!
    const mark = `alcove-sso-token=${hash('sha256', token, 'base64url')}; Path=/; Max-Age=60; SameSite=Lax`
    assert.deepEqual([page.headers['set-cookie']].flat(), [mark])
    assert.equal((await sso.signIn('ada')).status, 200)
    await provider.setAccounts({ ada: {} })
    const failed = await sso.signIn('ada', browser)
    assert.deepEqual([failed.status, failed.location], [302, `${ours}?error=missing_email`])
    const { body, status } = await sso.signIn('ada')
    assert.deepEqual([status, body.code, body.statusCode], [403, 'missing_email', 403])
  })
})

suite('a removed member who signs in again', () => {
  test('a removed member who signs in again is a member again, as the same user with the default roles', async () => {
    await using sso = await startSso(provider)
    const { userId: id } = (await sso.signIn('ada')).body
    const path = `/organizations/${organizations.ours}/users`
    await sso.app.as('owner').delete(`${path}/${id}`)
    assert.equal((await sso.signIn('ada')).body.userId, id)
    assert.equal((await sso.app.as('owner').get(path)).body.length, 4)
    assert.ok(userId('owner'))
  })
})
