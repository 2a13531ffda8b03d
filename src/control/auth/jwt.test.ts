import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { exportJWK, exportSPKI, generateKeyPair, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { startIssuer, type TestIssuer } from '#test/control/issuer.ts'
import { organizations } from '#test/control/people.ts'
import { testSettings } from '#test/control/test-settings.ts'

const ada = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' }

/**
 * Starts control so that it trusts these issuers. With a cooldown of 0, an unknown key id makes control fetch the keys
 * immediately.
 */
const believing = (issuers: TestIssuer[], keyCooldownSeconds = 0) =>
  startControl({
    settings: { identity: { ...testSettings.identity, issuers: issuers.map(({ url }) => url), keyCooldownSeconds } },
  })

const statusOf = async (app: TestControl, token: string) => (await app.with(token).get('/users/me')).status

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

suite('a valid JWT', () => {
  test('a JWT is accepted with each of the four signature algorithms RS256, PS256, ES256 and EdDSA', async () => {
    await using issuer = await startIssuer()
    await using app = await believing([issuer])
    for (const algorithm of ['RS256', 'PS256', 'ES256', 'EdDSA'] as const) {
      assert.equal(await statusOf(app, await issuer.token(ada, { algorithm })), 200, algorithm)
    }
  })

  test('JWTs of several issuers are accepted; the same subject at two issuers means two users', async () => {
    await using one = await startIssuer()
    await using other = await startIssuer()
    await using app = await believing([one, other])
    const first = await app.with(await one.token(ada)).get('/users/me')
    const second = await app.with(await other.token({ ...ada, email: 'eve@example.com' })).get('/users/me')
    assert.deepEqual([first.status, second.status], [200, 200])
    assert.notEqual(first.body.id, second.body.id)
  })

  test('a JWT that has the user’s id in `uid` and their e-mail address in `sub` is accepted', async () => {
    await using app = await startControl()
    const reply = await app.asNewcomer({ cid: 'client', uid: '00u1', sub: 'ada@example.com' }).get('/users/me')
    assert.deepEqual([reply.status, reply.body.email], [200, 'ada@example.com'])
    const again = await app.asNewcomer({ sub: '00u1', email: 'other@example.com' }).get('/users/me')
    assert.equal(again.body.id, reply.body.id)
  })

  test('a JWT, even a cached one, is accepted until half a minute after its expiry, because clocks differ', async () => {
    await using app = await startControl()
    const now = app.clock.now()
    const seconds = Math.floor(now.getTime() / 1000)
    const token = await app.issuer.token({ ...ada, exp: seconds + 10, nbf: seconds + 20 }, { now })
    assert.equal(await statusOf(app, token), 200)
    app.clock.advance({ seconds: 39 })
    assert.equal(await statusOf(app, token), 200)
    app.clock.advance({ seconds: 2 })
    assert.equal(await statusOf(app, token), 401)
  })

  test('after an issuer replaces its key, JWTs with the new key are accepted, JWTs with the old key refused', async () => {
    await using issuer = await startIssuer()
    await using app = await believing([issuer])
    const before = await issuer.token(ada)
    assert.equal(await statusOf(app, before), 200)
    issuer.rotate()
    const after = await issuer.token({ ...ada, jti: '2' })
    assert.equal(await statusOf(app, after), 200)
    app.app.sandboxes.callers.forget()
    assert.equal(await statusOf(app, before), 401)
  })

  test('if an issuer is unreachable, a JWT is still accepted, as long as the issuer’s keys are cached', async () => {
    await using issuer = await startIssuer()
    await using app = await believing([issuer])
    assert.equal(await statusOf(app, await issuer.token(ada)), 200)
    issuer.misbehave((_, response) => response.destroy())
    assert.equal(await statusOf(app, await issuer.token({ ...ada, jti: '2' })), 200)
  })
})

suite('a JWT that is refused', () => {
  let issuer: TestIssuer
  let app: TestControl
  before(async () => {
    issuer = await startIssuer()
    app = await believing([issuer])
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    await issuer?.[Symbol.asyncDispose]()
  })

  const refused = (title: string, forge: (issuer: TestIssuer, seconds: number) => Promise<string> | string) =>
    test(`a JWT ${title} gets 401`, async () => {
      const good = await issuer.token(ada)
      const bad = await forge(issuer, Math.floor(app.clock.now().getTime() / 1000))
      assert.equal(await statusOf(app, bad), 401)
      // Control accepts a valid JWT of this issuer. So the tested JWT was refused for its own fault.
      assert.equal(await statusOf(app, good), 200)
      const [{ count }] = await app.database.sql<[{ count: number }]>`
        select count(*)::int as count from user_identities`
      assert.equal(count, 1)
    })

  refused('for another audience', (issuer) => issuer.token({ ...ada, aud: 'another' }))
  refused('for no audience', (issuer) => issuer.token({ ...ada, aud: undefined }))
  refused('of another issuer, but signed by ours,', (issuer) => issuer.token({ ...ada, iss: 'https://evil.example' }))
  refused('of no issuer', (issuer) => issuer.token({ ...ada, iss: undefined }))
  refused('of an issuer that differs by a slash', (issuer) => issuer.token({ ...ada, iss: `${issuer.url}/` }))
  refused('that has expired', (issuer, seconds) => issuer.token({ ...ada, exp: seconds - 31 }))
  refused('that never expires', (issuer) => issuer.token({ ...ada, exp: undefined }))
  refused('that is not valid yet', (issuer, seconds) => issuer.token({ ...ada, nbf: seconds + 60 }))
  refused('without a subject', (issuer) => issuer.token({ ...ada, sub: undefined }))
  refused('whose subject is empty, or too long, or holds a NUL', async (issuer) => {
    for (const sub of ['', 'a\u0000b']) assert.equal(await statusOf(app, await issuer.token({ ...ada, sub })), 401)
    return await issuer.token({ ...ada, sub: 'a'.repeat(256) })
  })
  refused('with an unknown key id', (issuer) => issuer.token(ada, { header: { kid: 'no-such' } }))
  refused('of the type logout+jwt', (issuer) => issuer.token(ada, { header: { typ: 'logout+jwt' } }))
  refused('with an unknown critical header', async (issuer) => {
    const [, payload, signature] = (await issuer.token(ada)).split('.')
    const { kid } = await issuer.publicJwk()
    return `${encode({ alg: 'ES256', kid, crit: ['x'], x: 1 })}.${payload}.${signature}`
  })

  refused('that is not signed (alg none)', (issuer) =>
    new UnsecuredJWT({ ...ada }).setIssuer(issuer.url).setAudience('alcove').setExpirationTime('1h').encode(),
  )
  refused('whose alg is none in another spelling', async (issuer) => {
    const [, payload] = (await issuer.token(ada)).split('.')
    return `${encode({ alg: 'nOnE' })}.${payload}.`
  })
  refused('without its signature', async (issuer) => (await issuer.token(ada)).replace(/[^.]+$/, ''))
  refused('whose payload was changed', async (issuer) => {
    const [header, , signature] = (await issuer.token(ada)).split('.')
    const exp = Math.floor(Date.now() / 1000) + 3600
    return `${header}.${encode({ ...ada, sub: 'root', iss: issuer.url, aud: 'alcove', exp })}.${signature}`
  })

  for (const form of ['PEM', 'JWK', 'modulus'] as const) {
    refused(`signed by HS256 with the public key (${form}) as the secret`, async (issuer) => {
      const jwk = await issuer.publicJwk('RS256')
      const key = (await importJWK(jwk, 'RS256', { extractable: true })) as CryptoKey
      const secret = { PEM: await exportSPKI(key), JWK: JSON.stringify(jwk), modulus: jwk.n! }[form]
      const [, payload] = (await issuer.token(ada, { algorithm: 'RS256' })).split('.')
      const signed = `${encode({ alg: 'HS256', kid: jwk.kid })}.${payload}`
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
    })
  }

  const forgedBy = async (issuer: TestIssuer, headerOf: (own: Awaited<ReturnType<typeof exportJWK>>) => object) => {
    const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true })
    const header = { alg: 'ES256', ...headerOf(await exportJWK(publicKey)) }
    const token = new SignJWT({ ...ada }).setIssuer(issuer.url).setAudience('alcove').setExpirationTime('1h')
    return await token.setProtectedHeader(header).sign(privateKey)
  }
  refused('that contains its own key (jwk)', (issuer) => forgedBy(issuer, (own) => ({ jwk: own })))
  refused('that names its own key (x5u, x5c)', (issuer) =>
    forgedBy(issuer, () => ({ x5u: 'https://evil.example/cert', x5c: ['MIIB'] })),
  )
  refused('signed by another key with our key’s id', async (issuer) => {
    const { kid } = await issuer.publicJwk()
    return await forgedBy(issuer, () => ({ kid }))
  })
  test('a JWT with a `jku` header gets 401, and the URL in that header is never fetched', async () => {
    await using evil = await startIssuer()
    const forged = await evil.token({ ...ada, iss: issuer.url }, { header: { jku: `${evil.url}/keys` } })
    assert.equal(await statusOf(app, forged), 401)
    assert.deepEqual(evil.asked, [])
  })

  test('a JWT of an unknown issuer gets 401, and control does not contact that issuer', async () => {
    await using evil = await startIssuer()
    assert.equal(await statusOf(app, await evil.token(ada)), 401)
    assert.deepEqual(evil.asked, [])
  })

  test('a JWT that is longer than the limit gets 401', async () => {
    issuer.asked.length = 0
    assert.equal(await statusOf(app, await issuer.token({ ...ada, fill: 'x'.repeat(8192) })), 401)
    assert.deepEqual(issuer.asked, [])
  })

  test('a JWT whose parts are not JSON, or have a wrong type, gets 401', async () => {
    const kid = (await issuer.publicJwk()).kid!
    for (const header of [
      [],
      { alg: 1 },
      { alg: 'ES256', kid: {} },
      { alg: ['ES256'] },
      { alg: 'ES256', kid, typ: 1 },
    ]) {
      for (const payload of ['{', '[]', '"x"', JSON.stringify({ iss: { url: issuer.url } }), '{"iss":1}']) {
        const token = `${encode(header).replace(/^(?!eyJ)/, 'eyJ')}.${Buffer.from(payload).toString('base64url')}.c2ln`
        assert.equal(await statusOf(app, token), 401, `${JSON.stringify(header)} ${payload}`)
      }
    }
  })
})

suite('a JWT whose issuer fails', () => {
  const troubles: Record<string, Parameters<TestIssuer['misbehave']>[0]> = {
    'is unreachable': (_, response) => response.destroy(),
    'answers with an error': (_, response) => response.writeHead(500).end(),
    'answers with a redirect': (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    'answers with HTML': (_, response) => response.end('<html>'),
    'answers with 300 kB': (_, response) => response.end(`"${'x'.repeat(300_000)}"`),
    'answers for another issuer': (_, response) =>
      response.end(JSON.stringify({ issuer: 'https://evil.example', jwks_uri: 'https://evil.example/keys' })),
    'has its keys at a metadata address': ({ headers }, response) =>
      response.end(JSON.stringify({ issuer: `http://${headers.host}`, jwks_uri: 'http://169.254.169.254/keys' })),
  }
  for (const trouble of Object.keys(troubles)) {
    test(`a JWT gets 503 if its issuer ${trouble}`, async () => {
      const issuer = issuers.get(trouble)!
      issuer.misbehave(troubles[trouble])
      const reply = await app.with(await issuer.token(ada)).get('/users/me')
      assert.deepEqual([reply.status, reply.body.code], [503, 'SERVICE_UNAVAILABLE'])
      // Callers with an API key are not affected by the unreachable issuer.
      assert.equal((await app.as('owner').get('/users/me')).status, 200)
    })
  }

  const issuers = new Map<string, TestIssuer>()
  let app: TestControl
  before(async () => {
    for (const trouble of Object.keys(troubles)) issuers.set(trouble, await startIssuer())
    app = await believing([...issuers.values()])
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    for (const issuer of issuers.values()) await issuer[Symbol.asyncDispose]()
  })

  test('a JWT gets 503 while its issuer is unreachable, and control limits its attempts to reach the issuer', async () => {
    await using issuer = await startIssuer()
    await using app = await believing([issuer])
    issuer.misbehave((_, response) => response.destroy())
    for (const jti of ['1', '2', '3', '4', '5', '6', '7', '8']) {
      assert.equal(await statusOf(app, await issuer.token({ ...ada, jti })), 503)
    }
    assert.ok(issuer.asked.length < 8, `it was asked ${issuer.asked.length} times`)
  })
})

test('JWTs with unknown key ids make control fetch the issuer’s keys once per cooldown, not per request', async () => {
  await using issuer = await startIssuer()
  await using app = await believing([issuer], 30)
  assert.equal(await statusOf(app, await issuer.token(ada)), 200)
  const before = issuer.asked.length
  for (const kid of ['a', 'b', 'c'])
    assert.equal(await statusOf(app, await issuer.token(ada, { header: { kid } })), 401)
  assert.equal(issuer.asked.length, before)
})

suite('the organization of a signed-in user', () => {
  const { ours, theirs } = organizations
  const ask = async (client: ReturnType<TestControl['asUser']>, path: string) => (await client.get(path)).status

  test('a signed-in user acts in the organization of path or header, or else in the personal organization', async () => {
    await using app = await startControl()
    const personal = await app.asNewcomer(ada).get('/organizations')
    assert.deepEqual(
      personal.body.map(({ name, personal: isPersonal }: { name: string; personal: boolean }) => [name, isPersonal]),
      [['Personal', true]],
    )
    assert.equal(await ask(app.asNewcomer(ada), `/organizations/${personal.body[0].id}`), 200)
    const made = await app.asNewcomer(ada).post('/api-keys', { name: 'mine', permissions: ['write:sandboxes'] })
    assert.equal(made.status, 201)
    const seen = await app.with(made.body.value).get('/organizations')
    assert.equal(seen.body[0].id, personal.body[0].id)
  })

  test('a user who is no member gets 404 if the path names the organization, 403 if only a header names it', async () => {
    await using app = await startControl()
    assert.equal(await ask(app.asUser('owner'), `/organizations/${theirs}`), 404)
    assert.equal(await ask(app.asUser('owner'), '/organizations/no-such'), 404)
    assert.equal(await ask(app.asUser('owner', theirs), '/regions'), 403)
    assert.equal(await ask(app.asUser('owner', 'no-such'), '/regions'), 403)
    assert.equal(await ask(app.asUser('owner', theirs), `/organizations/${ours}`), 200)
  })

  test('a signed-in owner may do everything in the organization; a member may do what its roles allow', async () => {
    await using app = await startControl()
    const remove = async (who: 'owner' | 'member') => (await app.asUser(who).delete('/sandbox/no-such')).status
    assert.deepEqual([await remove('owner'), await remove('member')], [404, 403])
    assert.equal(
      (await app.asUser('member').post('/api-keys', { name: 'a', permissions: ['write:sandboxes'] })).status,
      201,
    )
    const more = await app.asUser('member').post('/api-keys', { name: 'b', permissions: ['delete:sandboxes'] })
    assert.equal(more.status, 403)
  })

  test('an operator has the rights of an owner in every organization', async () => {
    await using app = await startControl()
    assert.equal(await ask(app.asUser('admin', theirs), '/regions'), 200)
    assert.equal(await ask(app.asUser('admin'), `/organizations/${ours}`), 200)
    assert.equal(await ask(app.asUser('admin', 'no-such'), '/regions'), 403)
    assert.equal((await app.asUser('admin', ours).delete('/sandbox/no-such')).status, 404)
  })

  test('a user who was removed from an organization gets 403 for the next request', async () => {
    await using app = await startControl()
    assert.equal(await ask(app.asUser('member'), '/regions'), 200)
    await app.database.transaction(async (sql) => {
      await sql`delete from members where user_id = 'user-member'`
    })
    app.app.sandboxes.callers.forget()
    assert.equal(await ask(app.asUser('member'), '/regions'), 403)
  })

  test('GET /organizations returns all organizations of a signed-in user, or the one organization of an API key', async () => {
    await using app = await startControl()
    await app.database
      .sql`insert into members (organization_id, user_id, role) values (${theirs}, 'user-owner', 'member')`
    const ids = async (client: ReturnType<TestControl['asUser']>) =>
      (await client.get('/organizations')).body.map(({ id }: { id: string }) => id).sort()
    assert.deepEqual(await ids(app.asUser('owner')), [ours, theirs])
    assert.deepEqual(await ids(app.as('owner')), [ours])
  })

  test('GET /api-keys/current answers 401 to a signed-in user, who has no API key', async () => {
    await using app = await startControl()
    assert.equal(await ask(app.asUser('owner'), '/api-keys/current'), 401)
  })
})
