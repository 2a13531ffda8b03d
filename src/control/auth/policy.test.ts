// Calls every endpoint as every kind of caller, and compares the answers with docs/reference/policy.md.
// The tests use the real guard, but replace the handlers.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { createServer } from '#src/http/server.ts'
import { silentLog } from '#src/kit/log.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, type Person, recogniseAt } from '#test/control/people.ts'
import unserved from '../unserved.json' with { type: 'json' }
import { globalRoles } from './global-roles.ts'
import { allPermissions, type Permission } from './permissions.ts'
import { type Answer, answerTo, callers, decidedInside, type GridCaller, otherDoors } from './policy.ts'
import type { ControlRoute, Needs } from './route.ts'
import { hashKey, newKey } from './secret.ts'

let app: TestControl
let server: FastifyInstance
type Headers = Record<string, string>

/** The headers of each kind of caller. `byKey`: with an API key or a service key. `signedIn`: with a JWT. */
const byKey = new Map<GridCaller, Headers>([['nobody', {}]])
const signedIn = new Map<GridCaller, Headers>()

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/**
 * Replaces the handler of a route. The new handler returns the id of the organization for which the guard has admitted the
 * caller.
 */
const asMarker = ({ method, path, needs, summary }: ControlRoute): ControlRoute => ({
  method,
  path,
  needs,
  summary,
  replies: { 200: null },
  run: (context) => ({ organizationId: (context as { organization?: { id: string } }).organization?.id ?? null }),
})

/** Makes an API key for a user in the test organization `ours`. */
const giveKey = async (name: string, userId: string, permissions: readonly Permission[]) => {
  const value = newKey()
  await app.database.sql`
    insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
    values (${organizations.ours}, ${userId}, ${name}, ${hashKey(value)}, '***', ${[...permissions]})`
  return value
}

const giveMember = async ({ id, name }: (typeof globalRoles)[number]) => {
  const { sql } = app.database
  await sql`insert into users (id, name, email) values (${name}, ${name}, ${`${id}@example.com`})`
  await sql`insert into members (organization_id, user_id, role) values (${organizations.ours}, ${name}, 'member')`
  await sql`insert into member_roles values (${organizations.ours}, ${name}, ${id})`
  await sql`
    insert into user_identities (issuer, subject, user_id, email, email_verified, name, said_at, is_source)
    values (${app.issuer.url}, ${name}, ${name}, 'a@example.com', true, ${name}, now(), false)`
  await signIn(name, name, organizations.ours)
  return await giveKey(name, name, allPermissions)
}

/** Adds the headers of a caller to `signedIn`: a JWT of the test issuer, and the organization that the caller names. */
const signIn = async (caller: GridCaller, subject: string, organizationId?: string) => {
  const token = await app.issuer.token({ sub: subject }, { now: app.clock.now() })
  const named: Headers = organizationId === undefined ? {} : { 'x-daytona-organization-id': organizationId }
  signedIn.set(caller, { ...bearer(token), ...named })
}

/** Calls every endpoint as each caller in `by`. Returns the endpoints whose replies differ from docs/reference/policy.md. */
const differences = async (by: ReadonlyMap<GridCaller, Headers>): Promise<string[]> => {
  const wrong: string[] = []
  // The calls of one caller follow each other. So most calls find the credential in control's cache, which keeps it for a second.
  for (const [caller, headers] of by) {
    for (const route of app.app.routes) {
      const [answer, expected] = [await ask(route, headers), answerTo(route, caller)]
      if (answer !== expected) wrong.push(`${titleOf(route)} answers ${caller} ${answer}, the grid says ${expected}`)
    }
  }
  return wrong
}

const fill = (path: string) =>
  path.replaceAll(/:(\w+)/g, (_, name) => (name === 'organizationId' ? organizations.ours : 'x'))

const ask = async ({ method, path }: ControlRoute, headers: Headers): Promise<Answer> => {
  const reply = await server.inject({ method, url: fill(path), headers })
  if (reply.statusCode !== 200) return String(reply.statusCode) as Answer
  const { organizationId } = reply.json()
  return organizationId === null || organizationId === organizations.ours ? 'yes' : 'own'
}

const unnamed = (path: string) => path.replaceAll(/:\w+(?:\|:\w+)*/g, ':')

/**
 * Returns method and path of every Fastify route. Fastify prints the routes as a tree, with four characters more indent
 * per level.
 */
const servedBy = (from: FastifyInstance): string[] => {
  const above: string[] = []
  const served = from
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent, piece, methods] = /^((?:[│ ] {3})*)[├└]── (.*) \(([A-Z, ]+)\)$/.exec(line) ?? []
      if (indent === undefined || piece === undefined || methods === undefined) return []
      above.length = indent.length / 4
      above.push(piece)
      const path = unnamed(above.join('')).replace(/^\/api(?=\/)/, '')
      return methods
        .split(', ')
        .flatMap((method) => (method === 'HEAD' || method === 'OPTIONS' ? [] : `${method} ${path}`))
    })
  return [...new Set(served)]
}

const titleOf = ({ method, path }: ControlRoute) => `${method} ${path}`

suite('the callers that each endpoint admits', () => {
  before(async () => {
    app = await startControl()
    const { owner, viewer, stranger, admin, proxy, runner, collector } = keys
    const services = { proxy, runner, collector, 'ssh-gateway': keys['ssh-gateway'] }
    const known = { stranger, member: viewer, owner, 'operator by key': admin, ...services } as const
    for (const [caller, token] of Object.entries(known)) byKey.set(caller as GridCaller, bearer(token))
    for (const role of globalRoles) byKey.set(role.name, bearer(await giveMember(role)))
    const people: [GridCaller, Person, string?][] = [
      ['stranger', 'stranger', organizations.theirs],
      ['member', 'viewer', organizations.ours],
      ['owner', 'owner', organizations.ours],
      ['operator', 'admin', organizations.ours],
    ]
    for (const [caller, who, organizationId] of people) {
      await recogniseAt(app.database.sql, app.issuer.url, who)
      await signIn(caller, who, organizationId)
    }
    for (const permission of allPermissions) {
      byKey.set(permission, bearer(await giveKey(permission, 'user-owner', [permission])))
    }
    server = await createServer<object, Needs>({
      routes: app.app.routes.map(asMarker),
      prefixes: [''],
      source: 'TEST',
      guard: app.app.guard,
      log: silentLog(),
    })
  })
  after(async () => {
    await server?.close()
    await app?.[Symbol.asyncDispose]()
  })

  test('for each kind of API key, each endpoint answers as docs/reference/policy.md says', async () => {
    assert.deepEqual(
      Object.keys(callers).filter((caller) => !byKey.has(caller as GridCaller)),
      ['operator'],
    )
    assert.deepEqual(await differences(byKey), [])
  })

  test('for each kind of signed-in user, each endpoint answers as docs/reference/policy.md says', async () => {
    assert.equal(signedIn.size, 4 + globalRoles.length)
    assert.deepEqual(await differences(signedIn), [])
  })

  test('each endpoint admits at least one kind of caller; only public endpoints admit all kinds', () => {
    for (const route of app.app.routes) {
      const answers = new Set((Object.keys(callers) as GridCaller[]).map((caller) => answerTo(route, caller)))
      assert.ok(answers.has('yes'), titleOf(route))
      assert.equal(answers.size === 1, route.needs === 'public', titleOf(route))
    }
  })

  test('each endpoint is in docs/reference/policy.md, or in a list of exceptions', () => {
    // Calls of the public API that control does not serve. They answer 404 to everybody (src/http/unserved.ts).
    const refusing = new Set(Object.keys(unserved).map((call) => call.replaceAll('{}', ':')))
    const inGrid = new Set(app.app.routes.map(({ method, path }) => `${method} ${unnamed(path)}`))
    const served = servedBy(app.app.server)
    assert.deepEqual(
      [...inGrid].filter((title) => !served.includes(title)),
      [],
    )
    const alone = served.filter(
      (title) =>
        !inGrid.has(title) &&
        !refusing.has(title) &&
        !Object.keys(otherDoors).some((start) => `${title.split(' ')[1]?.replace(/\*$/, '')}/`.startsWith(`${start}/`)),
    )
    assert.deepEqual(alone, [], 'needs a row in endpoints.ts, or a line in otherDoors')
  })

  test('the global roles in the code equal the global roles in the database', async () => {
    const rows = await app.database.sql<{ id: string; name: string; permissions: Permission[] }[]>`
      select id, name, permissions from roles where organization_id is null order by id`
    const asText = (roles: readonly { id: string; name: string; permissions: readonly Permission[] }[]) =>
      roles.map(({ id, name, permissions }) => [id, name, [...permissions].sort()])
    assert.deepEqual(asText(rows), asText(globalRoles))
  })

  test('`decidedInside` lists the endpoints whose handlers check access again; all listed endpoints exist', () => {
    const titles = app.app.routes.map(titleOf)
    assert.deepEqual(
      Object.keys(decidedInside).filter((title) => !titles.includes(title)),
      [],
    )
  })
})
