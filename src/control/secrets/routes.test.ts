import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, afterEach, before, suite, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import type { SecretsOfRunner } from '#src/wire/secrets.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner, untilState } from '#test/control/simulated-runner.ts'

const value = 'sk-very-secret-value'

let app: TestControl
let runner: SimulatedRunner

const post = (more: object = {}) =>
  app.as('owner').post('/secret', { name: 'api-key', value, hosts: ['api.example.com'], ...more })
const made = async (more: object = {}) => {
  const reply = await post(more)
  assert.equal(reply.status, 201, reply.text)
  return reply.body as { id: string; name: string; placeholder: string; hosts: string[] }
}
const removeAll = async () => {
  await app.database.sql`delete from secrets`
}
const told = async (): Promise<SecretsOfRunner> => (await app.as('runner').get('/runners/secrets')).body
const assigned = async (id: string) => {
  const listed = (await app.as('runner').get('/sandbox/for-runner')).body as {
    id: string
    assignment: { env: Record<string, string>; authority?: string; network: object; generation: number }
  }[]
  return listed.find((each) => each.id === id)?.assignment ?? assert.fail('not in the list')
}
const create = async (body: object = {}): Promise<string> => {
  const reply = await app.as('owner').post('/sandbox', body)
  assert.equal(reply.status, 200, reply.text)
  return reply.body.id
}
const put = (id: string, secrets: unknown) =>
  app.as('owner').send('PUT', `/sandbox/${id}/secrets`, JSON.stringify({ secrets }))

suite('secrets of an organization', () => {
  before(async () => {
    app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    runner = await connectRunner(app)
  })
  after(async () => {
    await runner?.[Symbol.asyncDispose]()
    await app?.[Symbol.asyncDispose]()
  })
  afterEach(removeAll)

  suite('POST /secret', () => {
    test('POST /secret returns a placeholder and no value; the value is encrypted in the database', async () => {
      const reply = await post({ description: 'ours', hosts: ['API.Example.com.', '*.bücher.example'] })
      assert.equal(reply.status, 201, reply.text)
      const { id, placeholder, createdAt, updatedAt, ...rest } = reply.body
      assert.deepEqual(rest, {
        name: 'api-key',
        description: 'ours',
        hosts: ['api.example.com', '*.xn--bcher-kva.example'],
      })
      assert.match(placeholder, /^alcove_secret_[A-Za-z0-9]{32}$/)
      assert.ok(id && createdAt && updatedAt)
      const [row] = await app.database.sql`select to_jsonb(s)::text as text from secrets s`
      const [authority] = await app.database.sql`select to_jsonb(a)::text as text from secret_authorities a`
      const audited = await app.database.sql`select to_jsonb(a)::text as text from audit_log a`
      const stored = [row, authority, ...audited].map((each) => each?.['text']).join()
      assert.match(stored, /POST \/secret/)
      for (const text of [stored, reply.text]) assert.doesNotMatch(text, /very-secret|PRIVATE KEY/)
    })

    test('POST /secret accepts a secret without hosts; no runner gets the value of such a secret', async () => {
      const { name, hosts } = await made({ hosts: undefined })
      assert.deepEqual(hosts, [])
      await create({ secrets: [{ TOKEN: name }] })
      assert.deepEqual((await told()).secrets, [])
    })

    test('POST /secret answers 400 if a host is `*`, an IP address or a URL, or has a port', async () => {
      for (const [host, why] of Object.entries({
        '*': /names such as/,
        '*.com': /names such as/,
        'a.*.com': /names such as/,
        '**.example.com': /names such as/,
        '10.0.0.1': /not addresses/,
        '127.1': /not addresses/,
        '0x7f000001': /not addresses/,
        '[::1]': /names such as/,
        '::1': /names such as|port/,
        localhost: /names such as/,
        'api.example.com:8443': /without a port/,
        'https://api.example.com': /names such as/,
        'api.example.com/path': /names such as/,
        'a b.example.com': /names such as/,
        '': /names such as/,
        [`${'a'.repeat(64)}.example.com`]: /names such as/,
      })) {
        const reply = await post({ hosts: [host] })
        assert.deepEqual([reply.status, why.test(reply.body.message)], [400, true], `${host}: ${reply.text}`)
      }
      assert.deepEqual((await app.as('owner').get('/secret')).body, [])
    })

    test('POST /secret answers 400 for a value that an HTTP header cannot carry, and for other invalid fields', async () => {
      for (const more of [
        ...['a\nb', 'a\r\nX: y', 'a\r', '\n', ''].map((value) => ({ value })),
        ...['a\0b', 'ü', ' a', 'a ', '\t', 'x'.repeat(8193), 7, null].map((value) => ({ value })),
        ...['', 'a b', 'a/b', 'ü', 'x'.repeat(129), 7, null].map((name) => ({ name })),
        ...['a\0', 'x'.repeat(2000), {}].map((description) => ({ description })),
        ...[['a.example'].fill('x', 1), 'api.example.com', [7], Array(51).fill('a.example.com')].map((hosts) => ({
          hosts: Array.isArray(hosts) && hosts[0] === 'a.example' ? [{}] : hosts,
        })),
      ])
        assert.equal((await post(more)).status, 400, JSON.stringify(more).slice(0, 100))
      assert.match((await post({ value: 'a\nb' })).body.message, /line end/)
    })

    test('POST /secret answers 409 for a name in use, and 403 above the organization’s quota', async () => {
      await made()
      assert.equal((await post()).status, 409)
      await app.database.sql`update organizations set secret_quota = 1 where id = ${organizations.ours}`
      const reply = await post({ name: 'another' })
      await app.database.sql`update organizations set secret_quota = 1000 where id = ${organizations.ours}`
      assert.equal(reply.status, 403)
      assert.match(reply.body.message, /An organization can have at most 1 secrets/)
    })

    test('POST /secret answers 403 without the permission `manage:secrets`; GET /secret works for every member', async () => {
      assert.equal((await app.as('member').post('/secret', { name: 'x', value })).status, 403)
      assert.equal((await app.as('member').get('/secret')).status, 200)
    })
  })

  test('GET /secret, GET /secret/paginated and GET /secret/{secretId} return secrets without values', async () => {
    for (const name of ['b', 'a', 'c']) await made({ name })
    const names = ({ body }: { body: { name: string }[] }) => body.map(({ name }) => name)
    assert.deepEqual(names(await app.as('owner').get('/secret')), ['a', 'b', 'c'])
    for (const [query, expected] of [
      ['sort=name&order=asc', ['a', 'b', 'c']],
      ['sort=name&order=desc', ['c', 'b', 'a']],
      ['sort=createdAt&order=asc', undefined],
      ['name=B', ['b']],
    ] as const) {
      const seen: string[] = []
      let cursor = ''
      do {
        const page = await app.as('owner').get(`/secret/paginated?limit=1&${query}${cursor && `&cursor=${cursor}`}`)
        assert.equal(page.status, 200, page.text)
        assert.doesNotMatch(page.text, /very-secret/)
        assert.equal(page.body.total, query === 'name=B' ? 1 : 3)
        seen.push(...page.body.items.map(({ name }: { name: string }) => name))
        cursor = page.body.nextCursor ?? ''
      } while (cursor !== '')
      if (expected) assert.deepEqual(seen, expected)
      else assert.deepEqual(seen.sort(), ['a', 'b', 'c'])
    }
    for (const bad of ['cursor=x', 'limit=0', 'limit=201', 'sort=value', 'order=up'])
      assert.equal((await app.as('owner').get(`/secret/paginated?${bad}`)).status, 400, bad)
    const { id } = await made({ name: 'd' })
    assert.equal((await app.as('owner').get(`/secret/${id}`)).body.name, 'd')
    assert.equal((await app.as('stranger').get(`/secret/${id}`)).status, 404)
  })

  test('PATCH /secret/{secretId} changes the given fields, and answers 400 for a bad value and 404 to strangers', async () => {
    const { id, placeholder } = await made()
    const patch = (body: object, who: 'owner' | 'stranger' = 'owner') => app.as(who).patch(`/secret/${id}`, body)
    const changed = await patch({ hosts: ['other.example.com'], description: 'new' })
    assert.deepEqual(
      [changed.status, changed.body.hosts, changed.body.description, changed.body.placeholder],
      [200, ['other.example.com'], 'new', placeholder],
    )
    assert.equal((await patch({ value: 'x' }, 'stranger')).status, 404)
    for (const bad of [{ value: 'a\nb' }, { hosts: ['*'] }, { value: 7 }]) assert.equal((await patch(bad)).status, 400)
    const box = await create({ secrets: [{ TOKEN: 'api-key' }] })
    assert.equal((await told()).secrets[0]?.value, value)
    await patch({ value: 'rotated' })
    const [secret] = (await told()).secrets
    assert.deepEqual([secret?.value, secret?.hosts], ['rotated', ['other.example.com']])
    assert.ok(box)
  })

  test('DELETE /secret/{secretId} removes the secret from all sandboxes, and answers 404 to strangers', async () => {
    const { id } = await made()
    const box = await create({ secrets: [{ TOKEN: 'api-key' }] })
    const before = await assigned(box)
    assert.equal((await app.as('stranger').delete(`/secret/${id}`)).status, 404)
    assert.equal((await app.as('owner').delete(`/secret/${id}`)).status, 204)
    const after = await assigned(box)
    assert.equal(after.env['TOKEN'], undefined)
    assert.ok(after.generation > before.generation)
    assert.deepEqual((await told()).secrets, [])
    assert.equal((await app.as('owner').delete(`/secret/${id}`)).status, 404)
  })

  suite('the secrets of a sandbox', () => {
    test('the assignment of a sandbox contains a secret’s placeholder; a runner reads the value separately', async () => {
      const { placeholder } = await made()
      const box = await create({ env: { SSL_CERT_FILE: '/own' }, secrets: [{ TOKEN: 'api-key' }] })
      const assignment = await assigned(box)
      assert.equal(assignment.env['TOKEN'], placeholder)
      assert.equal(assignment.env['SSL_CERT_FILE'], '/own')
      assert.match(assignment.env['NODE_EXTRA_CA_CERTS'] ?? '', /authority\.pem$/)
      assert.deepEqual((assignment.network as { hasSecrets?: boolean }).hasSecrets, true)
      assert.doesNotMatch(JSON.stringify(assignment), /very-secret|PRIVATE/)
      const { secrets, sandboxes } = await told()
      assert.deepEqual(sandboxes.find(({ sandboxId }) => sandboxId === box)?.secretIds, [secrets[0]?.id])
      const [secret] = secrets
      assert.equal(secret?.value, value)
      const authority = new X509Certificate(assignment.authority ?? '')
      const certificate = new X509Certificate(secret?.certificate ?? '')
      assert.ok(certificate.verify(authority.publicKey) && certificate.checkIssued(authority))
      assert.equal(certificate.checkHost('api.example.com'), 'api.example.com')
      createSecureContext({ cert: secret?.certificate, key: secret?.privateKey })
      const shown = (await app.as('owner').get(`/sandbox/${box}`)).text
      assert.doesNotMatch(shown, /very-secret|alcove_secret/)
    })

    test('the assignment of a sandbox without secrets has no variables for secrets and no certificate', async () => {
      const assignment = await assigned(await create())
      assert.deepEqual([assignment.env, assignment.authority], [{}, undefined])
      assert.deepEqual(Object.keys(assignment.network).includes('hasSecrets'), false)
    })

    test('POST /sandbox answers 400 for an unknown secret, an invalid or repeated variable of a secret, or too many secrets', async () => {
      await made()
      for (const [secrets, why] of [
        [[{ TOKEN: 'none' }], /There is no secret "none"/],
        [[{ '1X': 'api-key' }], /not the name of a variable/],
        [[{ 'A=B': 'api-key' }], /not the name of a variable/],
        [[{ A: 'api-key' }, { A: 'api-key' }], /twice/],
        [Array.from({ length: 101 }, (_, n) => ({ [`A${n}`]: 'api-key' })), /at most 100/],
        [{ TOKEN: 'api-key' }, /secrets/],
        [[{ TOKEN: 7 }], /secrets/],
        ['api-key', /secrets/],
      ] as const) {
        const reply = await app.as('owner').post('/sandbox', { secrets })
        assert.deepEqual([reply.status, why.test(reply.body.message)], [400, true], reply.text)
      }
      assert.equal((await app.as('stranger').post('/sandbox', { secrets: [{ TOKEN: 'api-key' }] })).status, 400)
    })

    test('PUT /sandbox/{sandboxIdOrName}/secrets replaces all secrets of a sandbox, and answers strangers 404', async () => {
      const [one, two] = [await made({ name: 'one' }), await made({ name: 'two' })]
      const box = await create()
      const before = await assigned(box)
      assert.equal((await put(box, [{ A: 'one' }, { B: 'two' }])).status, 200)
      const mounted = await assigned(box)
      assert.ok(mounted.generation > before.generation)
      assert.deepEqual([mounted.env['A'], mounted.env['B']], [one.placeholder, two.placeholder])
      assert.equal((await put(box, [{ B: 'one' }])).status, 200)
      const replaced = await assigned(box)
      assert.deepEqual([replaced.env['A'], replaced.env['B']], [undefined, one.placeholder])
      assert.equal((await put(box, [])).status, 200)
      const detached = await assigned(box)
      assert.deepEqual([detached.env, detached.authority], [{}, undefined])
      for (const bad of [[{ A: 'none' }], 'x', [{ '': 'one' }], undefined])
        assert.equal((await put(box, bad)).status, 400)
      const strange = app.as('stranger').send('PUT', `/sandbox/${box}/secrets`, '{"secrets":[]}')
      assert.equal((await strange).status, 404)
    })

    test('GET /sandbox/{sandboxIdOrName} contains the variable and the id of each secret, but no placeholder', async () => {
      const { id, placeholder } = await made()
      const box = await create({ secrets: [{ TOKEN: 'api-key' }] })
      const reply = await app.as('owner').get(`/sandbox/${box}`)
      assert.deepEqual(reply.body.secrets, [{ variable: 'TOKEN', secretId: id }])
      assert.ok(!reply.text.includes(placeholder))
      const without = await app.as('owner').get(`/sandbox/${await create()}`)
      assert.equal('secrets' in without.body, false)
    })

    test('a fork has the secrets of the sandbox that was forked', async () => {
      const { placeholder } = await made()
      const parent = await create({ secrets: [{ TOKEN: 'api-key' }] })
      const fork = await app.as('owner').post(`/sandbox/${parent}/fork`, {})
      assert.equal(fork.status, 200, fork.text)
      const assignment = await assigned(fork.body.id)
      assert.deepEqual([assignment.env['TOKEN'], assignment.authority !== undefined], [placeholder, true])
      assert.ok((await told()).sandboxes.some(({ sandboxId }) => sandboxId === fork.body.id))
    })

    test('GET /runners/secrets lists the secrets of running sandboxes only', async () => {
      await made()
      const box = await create({ secrets: [{ TOKEN: 'api-key' }] })
      const isTold = async () => (await told()).sandboxes.some(({ sandboxId }) => sandboxId === box)
      assert.equal(await isTold(), true)
      await app.as('owner').post(`/sandbox/${box}/stop`)
      await untilState(app, box, 'stopped')
      assert.equal(await isTold(), false)
    })
  })
})
