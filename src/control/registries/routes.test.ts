import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { GuardedRegistry } from '#test/registry/guarded-registry.ts'
import { mostRegistries } from './service.ts'

const password = 'pass:word "of" ours\n{"key": "ü"}'
const account = { username: 'robot$ours', password }

/** Starts an HTTP server on 127.0.0.1 in place of an image registry. `listener` answers the requests. */
const startServer = async (listener: RequestListener) => {
  const server = createServer(listener)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

let app: TestControl
let basic: GuardedRegistry
let token: GuardedRegistry
const plain: string[] = []

const create = (more: object = {}) =>
  app.as('owner').post('/docker-registry', { name: 'Ours', url: basic.host, ...account, ...more })
const removeAll = async () => {
  await app.database.sql`delete from docker_registries`
}
const noteOf = ({ status, body }: { status: number; body: { message: string } }) => `${status} ${body.message}`
const asked = () => [...basic.registry.asked, ...basic.received, ...token.received].length

suite('image registries of an organization', () => {
  before(async () => {
    basic = await GuardedRegistry.guard(await TestRegistry.start(), 'basic', { [account.username]: password })
    token = await GuardedRegistry.guard(await TestRegistry.start(), 'token', { [account.username]: password })
    plain.push(basic.host, token.host)
    app = await startControl({ settings: { registries: { ...testSettings.registries, plain } } })
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    for (const each of [basic, token]) {
      await each?.registry[Symbol.asyncDispose]()
      await each?.[Symbol.asyncDispose]()
    }
  })

  suite('POST /docker-registry', () => {
    test('POST /docker-registry tests the credentials, saves them and answers 201, without the password', async () => {
      for (const { host } of [basic, token]) {
        const reply = await create({ url: `http://${host}/`, project: '/team/' })
        assert.equal(reply.status, 201, reply.text)
        const { id, createdAt, updatedAt, ...rest } = reply.body
        assert.deepEqual(rest, {
          ...{ name: 'Ours', url: `http://${host}/`, username: account.username, project: 'team' },
          registryType: 'organization',
        })
        assert.ok(id && createdAt && updatedAt)
      }
      const [row] = await app.database.sql`select to_jsonb(r)::text as text from docker_registries r`
      assert.doesNotMatch(row?.['text'], /pass:word/)
      assert.doesNotMatch((await app.as('owner').get('/docker-registry')).text, /pass:word/)
      const audited = await app.database.sql`select to_jsonb(a)::text as text from audit_log a`
      assert.match(audited.map(({ text }) => text).join(), /POST \/docker-registry/)
      assert.doesNotMatch(audited.map(({ text }) => text).join(), /pass:word/)
      await removeAll()
    })

    test('POST /docker-registry answers 400 for a wrong password or username, and saves nothing', async () => {
      for (const { host: url } of [basic, token]) {
        for (const more of [{ password: 'wrong' }, { username: 'nobody' }]) {
          const wrong = await create({ url, ...more })
          assert.match(noteOf(wrong), /^400 The registry 127\.0\.0\.1:\d+ does not accept this username and password/)
        }
      }
      assert.deepEqual((await app.as('owner').get('/docker-registry')).body, [])
    })

    test('POST /docker-registry answers 400 for an invalid URL or type, without a request to a registry', async () => {
      const before = asked()
      for (const more of [
        ...[
          'file:///etc/passwd',
          'https://a:b@c.example',
          'c.example/team',
          'c.example?x',
          'ghcr',
          '1.5',
          '',
          7,
          null,
        ].map((url) => ({ url })),
        { url: 'http://c.example' },
        { url: `c.example/${'x'.repeat(600)}` },
        ...['', '<b>x</b>', 'x'.repeat(300), 7].map((name) => ({ name })),
        ...['', 'a:b', 'a\0b', 'x'.repeat(300), {}].map((username) => ({ username })),
        ...['', 'x'.repeat(20_000), ['x']].map((password) => ({ password })),
        ...['a b', 'x'.repeat(300), 7].map((project) => ({ project })),
      ]) {
        assert.equal((await create(more)).status, 400, JSON.stringify(more).slice(0, 200))
      }
      assert.equal(asked(), before)
    })

    test('POST /docker-registry answers the same 400 for a private IP address, a closed port and a silent registry', async () => {
      await using closed = await startServer((_request, response) => void response.destroy())
      plain.push(closed.host)
      const notes = []
      for (const url of ['127.0.0.1:1', 'localhost:5000', '169.254.169.254', '10.0.0.1:5000', closed.host])
        notes.push(noteOf(await create({ url })).replace(url, 'X'))
      const [note] = notes
      assert.match(note ?? '', /^400 The registry X cannot be reached, or does not answer in time\./)
      assert.deepEqual([...new Set(notes)], [note])
    })

    test('POST /docker-registry answers 400 for a server that is not a registry, and sends that server no password', async () => {
      const received: string[] = []
      const answers: Record<string, RequestListener> = {
        redirect: (request, response) => void response.writeHead(302, { location: request.url }).end(),
        large: (_request, response) => {
          response.writeHead(200)
          const piece = Buffer.alloc(1024 * 1024)
          const write = () => {
            while (!response.destroyed && response.write(piece));
          }
          response.on('drain', write)
          response.on('error', () => {})
          write()
        },
        page: (_request, response) => void response.writeHead(404).end('<html>'),
        nonsense: (_request, response) => void response.writeHead(401, { 'www-authenticate': 'Negotiate' }).end(),
        'foreign realm': (_request, response) =>
          void response.writeHead(401, { 'www-authenticate': 'Bearer realm="https://evil.example/token"' }).end(),
        'open realm': (_request, response) =>
          void response.writeHead(401, { 'www-authenticate': 'Bearer realm="http://localhost/token"' }).end(),
      }
      for (const [name, answer] of Object.entries(answers)) {
        await using server = await startServer((request, response) => {
          received.push(request.headers.authorization ?? '')
          answer(request, response)
        })
        plain.push(server.host)
        const note = noteOf(await create({ url: server.host }))
        assert.match(
          note,
          name.endsWith('realm') ? /^400 .*password was not sent/ : /^400 .*does not answer like/,
          name,
        )
      }
      assert.deepEqual([...new Set(received)], [''])
    })

    test('POST /docker-registry answers 400 for a registry that the operator does not allow', async () => {
      await using strict = await startControl({
        settings: { registries: { ...testSettings.registries, allowed: ['ghcr.io'] } },
      })
      const reply = await strict.as('owner').post('/docker-registry', { name: 'x', url: 'quay.io', ...account })
      assert.match(noteOf(reply), /^400 Images from the registry quay\.io are not allowed here/)
    })

    test('POST /docker-registry answers 403 without write:registries or for too many registries, 409 for a host and project in use', async () => {
      const body = { name: 'Ours', url: basic.host, ...account }
      assert.equal((await app.as('member').post('/docker-registry', body)).status, 403)
      assert.equal((await create()).status, 201)
      assert.equal((await create({ name: 'Other' })).status, 409)
      const { sql } = app.database
      await sql`insert into docker_registries
      select id || n, organization_id, name, url, host, username, password, 'p' || n, created_at, updated_at
      from docker_registries, generate_series(1, ${mostRegistries - 2}) n`
      const replies = await Promise.all(['x', 'y', 'z'].map((project) => create({ project })))
      assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 403, 403])
      await removeAll()
    })
  })

  suite('GET /docker-registry', () => {
    test('GET /docker-registry returns the organization’s registries to its members only', async () => {
      const { body } = await create()
      assert.deepEqual((await app.as('member').get('/docker-registry')).body, [body])
      assert.deepEqual((await app.as('stranger').get('/docker-registry')).body, [])
      await removeAll()
    })
  })

  suite('GET /docker-registry/{id}', () => {
    test('GET /docker-registry/{id} returns a registry of the organization, and answers 404 for other registries', async () => {
      const { body } = await create()
      assert.deepEqual((await app.as('member').get(`/docker-registry/${body.id}`)).body, body)
      assert.equal((await app.as('stranger').get(`/docker-registry/${body.id}`)).status, 404)
      await removeAll()
    })
  })

  suite('PATCH /docker-registry/{id}', () => {
    test('PATCH /docker-registry/{id} changes only the given fields, and tests changed credentials', async () => {
      const { body } = await create()
      const path = `/docker-registry/${body.id}`
      const before = asked()
      const renamed = await app.as('owner').patch(path, { name: 'Renamed', project: 'team' })
      assert.deepEqual([renamed.status, renamed.body.name, renamed.body.project], [200, 'Renamed', 'team'])
      assert.equal(asked(), before)
      const wrong = await app.as('owner').patch(path, { password: 'wrong' })
      assert.match(noteOf(wrong), /^400 .*does not accept/)
      basic.accounts.set('second', 'new')
      const changed = await app.as('owner').patch(path, { ...body, username: 'second', password: 'new' })
      assert.deepEqual([changed.status, changed.body.username], [200, 'second'])
      assert.equal((await app.as('stranger').patch(path, { name: 'x' })).status, 404)
      await removeAll()
    })

    test('PATCH /docker-registry/{id} answers 409 if the registry was changed while its credentials were tested', async () => {
      const { body } = await create()
      const path = `/docker-registry/${body.id}`
      const { onRequest } = basic.registry
      basic.registry.onRequest = async (...request) => {
        basic.registry.onRequest = onRequest
        assert.equal((await app.as('owner').patch(path, { project: 'meanwhile' })).status, 200)
        return onRequest(...request)
      }
      assert.equal((await app.as('owner').patch(path, { name: 'Renamed', password })).status, 409)
      const { name, project } = (await app.as('owner').get(path)).body
      assert.deepEqual([name, project], ['Ours', 'meanwhile'])
      await removeAll()
    })

    test('PATCH /docker-registry/{id} answers 400 for a new host without a password, so the new host never gets the stored password', async () => {
      const { body } = await create()
      const received = token.received.length
      const reply = await app.as('owner').patch(`/docker-registry/${body.id}`, { url: token.host })
      assert.match(noteOf(reply), /^400 password is required/)
      assert.equal(token.received.length, received)
      await removeAll()
    })
  })

  suite('DELETE /docker-registry/{id}', () => {
    test('DELETE /docker-registry/{id} answers 204, then 404; strangers get 404, callers without delete:registries 403', async () => {
      const { body } = await create()
      const path = `/docker-registry/${body.id}`
      assert.equal((await app.as('stranger').delete(path)).status, 404)
      assert.equal((await app.as('member').delete(path)).status, 403)
      assert.equal((await app.as('owner').delete(path)).status, 204)
      assert.equal((await app.as('owner').delete(path)).status, 404)
    })
  })

  suite('the registry accounts that control sends to a runner', () => {
    const assigned = async () => {
      const { body } = await app.with(keys.runner).get('/runners/images')
      return new Map(
        (body as { image: string; source: object; logins?: object[] }[]).map(({ source, logins }) => [
          JSON.stringify(source),
          logins,
        ]),
      )
    }
    const loginsOf = async (part: string) => [...(await assigned())].find(([source]) => source.includes(part))?.[1]

    test('a runner gets the organization’s current credentials for each registry that an image names', async () => {
      const { body } = await create()
      const login = { host: basic.host, project: '', ...account }
      const owner = app.as('owner')
      await owner.post('/snapshots', { name: 'a', imageName: `${basic.host}/team/a:1` })
      await owner.post('/snapshots', { name: 'b', imageName: 'ghcr.io/team/b:1' })
      const dockerfileContent = `FROM ghcr.io/c\nCOPY --from=${basic.host}/team/c /a /a`
      await owner.post('/snapshots', { name: 'c', buildInfo: { dockerfileContent } })
      await owner.post('/snapshots', { name: 'd', buildInfo: { dockerfileContent: 'FROM ghcr.io/d' } })
      await app.as('stranger').post('/snapshots', { name: 'e', imageName: `${basic.host}/team/e:1` })
      for (const part of ['team/a', 'team/c']) assert.deepEqual(await loginsOf(part), [login], part)
      for (const part of ['team/b', 'ghcr.io/d', 'team/e']) assert.equal(await loginsOf(part), undefined, part)
      assert.equal((await assigned()).size, 5)

      basic.accounts.set(account.username, 'rotated')
      assert.equal((await owner.patch(`/docker-registry/${body.id}`, { password: 'rotated' })).status, 200)
      assert.deepEqual(await loginsOf('team/a'), [{ ...login, password: 'rotated' }])
      basic.accounts.set(account.username, password)

      // Control cannot decrypt this password, so the runner gets the assignment of the image without credentials.
      await app.database.sql`update docker_registries set password = 'v1.00000000.AAAA'`
      assert.equal(await loginsOf('team/a'), undefined)
    })
  })
})
