// Calls every endpoint in control's table (`routes`), and checks the rules that hold for all endpoints.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import { findUnbounded } from '#src/http/testing/unbounded.ts'
import { everything } from '#test/control/everything.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId, type Who } from '#test/control/people.ts'
import { connectRunner, type SimulatedRunner } from '#test/control/simulated-runner.ts'
import { isPermission } from './auth/permissions.ts'
import { type ControlRoute, roleNeeds } from './auth/route.ts'

let app: TestControl
let runner: SimulatedRunner
let sandboxId: string

const titleOf = ({ method, path }: ControlRoute) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`

const walk = async (check: (route: ControlRoute) => Promise<void> | void) => {
  for (const route of app.app.routes) {
    try {
      await check(route)
    } catch (error) {
      throw new Error(`${titleOf(route)}: ${error}`, { cause: error })
    }
  }
}

/** Returns the test user, or the program with a key, that may call this route. */
const allowed = ({ needs }: ControlRoute): Who => {
  if (needs === 'proxy' || needs === 'runner' || needs === 'collector') return needs
  return needs === 'admin' ? 'admin' : 'owner'
}

/** The value of each path parameter in the tests: an id or a name that exists in the organization `ours`. */
const ours: Record<string, string> = {
  organizationId: organizations.ours,
  sandboxIdOrName: 'box',
  userId: userId('member'),
  name: 'member',
  idOrName: 'snapshot-ours',
  warmPoolId: 'pool-ours',
  roleId: 'role-ours',
  invitationId: 'invitation-ours',
  id: 'region-ours',
  regionId: 'region-ours',
  interval: '0',
  ttlMinutes: '0',
  isPublic: 'true',
  port: '80',
  token: 'abcdefghijklmnop',
  signedPreviewToken: 'abcdefghijklmnop',
  provider: 'no-such',
  providerUserId: 'no-such',
  authToken: 'abcdefghijklmnop',
  endpointId: 'ep_ours',
  messageId: 'msg_ours',
  runnerId: 'local',
  volumeId: 'volume-ours',
  volumeName: 'shared',
  secretId: 'secret-ours',
}

const pathOf = ({ path }: ControlRoute, values: Record<string, string>) =>
  path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = values[name]
    assert.ok(value !== undefined, `say in this test what {${name}} of ${path} names`)
    return encodeURIComponent(value)
  })

const bodyOf = ({ body }: ControlRoute): string | undefined =>
  body === undefined ? undefined : JSON.stringify(Value.Create(body))

const normal = (title: string) => title.replaceAll(/:\w+|\{\w+\}/g, '{}')

const oddTexts = fc.oneof(
  fc.constantFrom('', ' ', '0', '-1', '1e400', '1.5', 'NaN', 'null', 'true', '[]', '{}', '{"a":{"b":1}}', '\u0000'),
  fc.constantFrom('99999999999999999999', '2147483648', '9007199254740993', '275761-01-01T00:00:00Z', '2024-02-31'),
  fc.constantFrom("'; drop table users; --", '%', '%_', '\\', '../../etc/passwd', 'a'.repeat(900), '\ud83d\ude00'),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

const oddParameter = fc.oneof(
  { weight: 1, arbitrary: fc.constant('box') },
  { weight: 3, arbitrary: oddTexts.map(encodeURIComponent) },
  // Path segments that no ordinary client sends, such as invalid percent encodings.
  { weight: 1, arbitrary: fc.constantFrom('%00', '%ff', '%c0%ae', '%', '%zz', '..%2f..', ';', '%EF%BF%BE') },
)

const oddValue = fc.oneof(
  oddTexts,
  fc.double(),
  fc.constantFrom<unknown>(1e308, -0, 2 ** 53, 1.5, null, true, [], {}, [[[]]]),
  fc.jsonValue({ maxDepth: 3 }),
)

const deep = (open: string, close: string, depth: number) => `${open.repeat(depth)}1${close.repeat(depth)}`

const propertiesOf = (schema: TSchema | undefined) =>
  Object.keys((schema as { properties?: Record<string, unknown> } | undefined)?.properties ?? {})

const oddObject = (schema: TSchema | undefined) =>
  fc.dictionary(
    fc.oneof(fc.constantFrom('x', '__proto__', 'constructor', ...propertiesOf(schema)), fc.string()),
    oddValue,
    {
      maxKeys: 8,
    },
  )

const oddBody = (schema: TSchema | undefined) =>
  fc.oneof(
    { weight: 6, arbitrary: oddObject(schema).map((body) => JSON.stringify(body)) },
    { weight: 1, arbitrary: fc.json({ maxDepth: 4 }) },
    { weight: 1, arbitrary: fc.constantFrom(deep('[', ']', 50_000), deep('{"a":', '}', 50_000), '{"a":1e999}', '') },
  )

const oddHeaders = fc.record(
  {
    'x-daytona-organization-id': fc.constantFrom('', organizations.ours, organizations.theirs, 'a, b', "'"),
    'x-service-organization-id': fc.constantFrom('', organizations.ours, organizations.theirs),
    'idempotency-key': fc.constantFrom('', 'a', 'a'.repeat(500), "'", '\u00ff'),
    'content-type': fc.constantFrom('application/json', 'text/plain', 'application/json; charset=utf-16', 'nonsense'),
  },
  { requiredKeys: [] },
)

suite('the endpoints of control', () => {
  before(async () => {
    app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    runner = await connectRunner(app)
    sandboxId = (await app.as('owner').post('/sandbox', { name: 'box' })).body.id
    const { sql } = app.database
    await sql`insert into regions (id, name, organization_id, region_type)
              values ('region-ours', 'ours', ${organizations.ours}, 'custom')`
    await sql`insert into invitations (id, organization_id, email, invited_by, role, expires_at, created_at, updated_at)
              values ('invitation-ours', ${organizations.ours}, 'guest@example.com', 'x', 'member', '2999-01-01', now(), now())`
    await sql`insert into roles (id, organization_id, name, description, permissions)
              values ('role-ours', ${organizations.ours}, 'ours', 'x', '{write:sandboxes}')`
    await sql`insert into volumes (id, organization_id, name, state, size_gib, created_at, updated_at)
              values ('volume-ours', ${organizations.ours}, 'shared', 'ready', 1, now(), now())`
    await sql`insert into secrets (id, organization_id, name, placeholder, value, hosts, created_at, updated_at)
              values ('secret-ours', ${organizations.ours}, 'ours', 'placeholder', 'x', '{}', now(), now())`
    await sql`insert into snapshots (organization_id, name, state, image, cpu, memory_gib, disk_gib)
              values (${organizations.ours}, 'snapshot-ours', 'active', 'default', 1, 1, 1)`
  })
  after(async () => {
    await runner?.[Symbol.asyncDispose]()
    await app?.[Symbol.asyncDispose]()
  })

  suite('every endpoint', () => {
    test('every endpoint has a summary and its required permission, and no endpoint occurs twice', () => {
      const seen = new Set<string>()
      for (const route of app.app.routes) {
        const title = normal(titleOf(route))
        assert.ok(!seen.has(title), `${title} is there twice`)
        seen.add(title)
        assert.match(route.summary, /^[A-Z\d].*\.$/, `the summary of ${title} is not a sentence`)
        assert.ok(isPermission(route.needs) || Object.hasOwn(roleNeeds, route.needs), `${title} needs ${route.needs}`)
        const statuses = Object.keys(route.replies).map(Number)
        assert.ok(statuses.length > 0 && statuses.every((status) => status < 400), `the replies of ${title}`)
      }
    })

    test('every endpoint is named in the title of a test', () => {
      const titles = globSync('**/*.test.ts', { cwd: import.meta.dirname })
        .map((file) => readFileSync(`${import.meta.dirname}/${file}`, 'utf8'))
        .flatMap((text) =>
          [...text.matchAll(/\b(?:suite|test)\(\s*(['"`])((?:(?!\1).)+)\1/g)].map(([, , title]) => title!),
        )
        .map(normal)
      // A title names an endpoint only by its exact method and path: `POST /sandbox/{}/stop` does not name `POST /sandbox`.
      const isNamed = (title: string) =>
        titles.some((text) => text.split(/[\s,;]+(?=[A-Z]+ \/)|(?<=\/\S*)[\s,;:]+/).includes(title))
      const missing = app.app.routes.map((route) => normal(titleOf(route))).filter((title) => !isNamed(title))
      assert.deepEqual(missing, [])
    })

    /**
     * Fields that accept values of any kind. They have only the limits of the whole body: 1 MiB, 10,000 values, 64
     * levels.
     * For `experimental-config`, the limit is 64 KiB.
     */
    const anyValue = [
      'PUT /organizations/:organizationId/experimental-config body',
      'PUT /organizations/:organizationId/experimental-config body{}',
      'POST /snapshots body.gpuType',
      ...['outboundProxyUrl', 'gpu', 'gpuType', 'spot', 'linkedSandbox'].map((field) => `POST /sandbox body.${field}`),
      'POST /mcp body',
    ]

    test('every endpoint limits the length of texts, lists and maps in its input', () => {
      assert.deepEqual(findUnbounded(app.app.routes), anyValue)
    })

    test('every endpoint that is not public answers 401 without a credential and with a wrong credential', async () => {
      await walk(async (route) => {
        const path = pathOf(route, { ...ours, sandboxId })
        for (const client of [app.as('nobody'), app.with('nonsense')]) {
          const { status, body } = await client.send(route.method, path, bodyOf(route))
          if (route.needs === 'public') assert.ok(status !== 401 && status < 500, `it answered ${status}`)
          else assert.deepEqual([status, body.code], [401, 'UNAUTHORIZED'])
        }
      })
    })

    test('every endpoint answers strangers as if the object in its path did not exist, and changes nothing', async () => {
      const before = await everything(app.database.sql, ['audit_log'])
      await walk(async (route) => {
        if (!route.path.includes(':') || route.needs === 'public') return
        const stranger = app.as('stranger')
        const ask = async (values: Record<string, string>) => {
          const { status, body } = await stranger.send(route.method, pathOf(route, values), bodyOf(route))
          // An error message may contain an id. The test replaces the id by `…`, so that messages about existing and missing
          // objects can be equal.
          const own = Object.values(values).map((value) => value.replaceAll(/[^\w-]/g, '\\$&'))
          const said = String(body?.message).replaceAll(new RegExp(`(?<= )(${own.join('|')})(?= not found)`, 'g'), '…')
          return { status, message: said, code: body?.code }
        }
        const settings = ['interval', 'ttlMinutes', 'isPublic', 'port']
        const names = { ...ours, sandboxId }
        const missing = Object.fromEntries(
          Object.entries(names).map(([name, value]) => [name, settings.includes(name) ? value : 'no-such-thing']),
        )
        const foreign = await ask(names)
        assert.ok(foreign.status === 404 || foreign.status === 403, `it answered ${foreign.status}`)
        assert.deepEqual(foreign, await ask(missing))
      })
      assert.ok(Object.keys(before).length > 10 && before['sandboxes']?.includes(sandboxId))
      assert.deepEqual(await everything(app.database.sql, ['audit_log']), before)
    })

    test('every endpoint answers 400 to a body that is not JSON', async () => {
      await walk(async (route) => {
        if (route.body === undefined) return
        const path = pathOf(route, { ...ours, sandboxId })
        for (const text of ['{', '{"a":}', 'no', '\u0000', "{'a':1}", '{"a":1}}']) {
          const reply = await app.as(allowed(route)).send(route.method, path, text)
          assert.deepEqual([reply.status, reply.body.code], [400, 'INVALID_REQUEST_BODY'], text)
        }
      })
    })

    test('a path that continues after an endpoint’s path answers 404', async () => {
      await walk(async (route) => {
        const path = `${pathOf(route, { ...ours, sandboxId })}/and/more/of/it`
        assert.equal((await app.as(allowed(route)).send(route.method, path)).status, 404)
      })
    })
  })

  suite('random requests', () => {
    test('no random path, query, header or body makes an endpoint answer 500', { timeout: 170_000 }, async () => {
      const runs = 60
      await walk(async (route) => {
        const parameters = route.path.match(/:\w+/g) ?? []
        const call = fc.record({
          parameters: fc.tuple(...parameters.map(() => oddParameter)),
          query: fc.array(fc.tuple(fc.constantFrom('x', ...propertiesOf(route.query)), oddTexts), { maxLength: 4 }),
          body: route.body === undefined ? fc.option(fc.json(), { nil: undefined, freq: 4 }) : oddBody(route.body),
          headers: oddHeaders,
        })
        await fc.assert(
          fc.asyncProperty(call, async ({ parameters: given, query, body, headers }) => {
            let next = 0
            const path = route.path.replaceAll(/:\w+/g, () => given[next++] as string)
            const search = query.map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`).join('&')
            const reply = await app.as(allowed(route)).send(route.method, `${path}?${search}`, body, { headers })
            assert.notEqual(reply.status, 500, `${path}?${search} ${body?.slice(0, 300)} ${JSON.stringify(headers)}`)
            // An error of `/mcp` has the form of the Model Context Protocol, with the message inside `error`.
            if (reply.status >= 400) assert.equal(typeof (reply.body.error?.message ?? reply.body.message), 'string')
          }),
          { numRuns: runs },
        )
      })
    })
  })
})
