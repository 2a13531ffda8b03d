// Tests that every control process refuses a revoked API key immediately. Two control processes share one database. The tests
// make changes in the first process, and the gate asks the second.
import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { AccessDesk } from '#src/gate/access.ts'
import type { AccessQuestion } from '#src/wire/access.ts'
import { type AddedPerson, addPerson } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { type App, createApp } from '../app.ts'
import { developerRoleId } from '../roles/service.ts'
import { openDatabase } from '../storage/database.ts'

const organization = `/organizations/${organizations.ours}`
const quiet = { sweepSeconds: 0, mostWarm: 0, createWaitSeconds: 0, momentMilliseconds: 0 }

type Second = AsyncDisposable & {
  app: App
  statusOf: (key: string, method: 'GET' | 'POST', url: string) => Promise<number>
}

/** Starts another control process, with its own connections and memory. */
const startSecond = async ({ parts, url }: TestControl): Promise<Second> => {
  const database = openDatabase(url, { max: 4 })
  const app = await createApp({ ...parts, database }, quiet)
  return {
    app,
    statusOf: async (key, method, path) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
      const payload = method === 'POST' ? { payload: '{}' } : {}
      const reply = await app.server.inject({ method, url: `/api${path}`, headers, ...payload })
      return reply.statusCode
    },
    [Symbol.asyncDispose]: async () => {
      await app.close()
      await database.close()
    },
  }
}

/**
 * Waits until `isSo` returns true, for at most 20 seconds. The other control process learns of a change only after a
 * moment.
 */
const until = async (isSo: () => Promise<boolean>, what: string) => {
  for (const end = Date.now() + 20_000; Date.now() < end; await pause(5)) if (await isSo()) return
  assert.fail(what)
}

/** Stops the clock that measures the age of cached answers. Returns a function that moves the clock. */
const stopClock = (context: TestContext) => {
  let now = performance.now()
  context.mock.method(performance, 'now', () => now)
  return (milliseconds: number) => {
    now += milliseconds
  }
}

/**
 * Changes that the tests make in the first control process. `key`: makes the user's API key invalid. `role`: takes away a
 * permission that a role gave.
 */
const changes: [string, 'key' | 'role', (app: TestControl, person: AddedPerson) => Promise<{ status: number }>][] = [
  ['a user deletes their key', 'key', (app, { key }) => app.with(key).delete('/api-keys/key')],
  ['an owner deletes a user’s key', 'key', (app, { id }) => app.as('owner').delete(`/api-keys/${id}/key`)],
  ['a user is removed', 'key', (app, { id }) => app.as('owner').delete(`${organization}/users/${id}`)],
  ['a user leaves', 'key', (app, { key }) => app.with(key).post(`${organization}/leave`)],
  [
    'a user gets other roles',
    'role',
    (app, { id }) =>
      app
        .as('owner')
        .post(`${organization}/users/${id}/access`, { role: 'member', assignedRoleIds: [developerRoleId] }),
  ],
  [
    'a user’s role gets other permissions',
    'role',
    (app) =>
      app
        .as('owner')
        .put(`${organization}/roles/role-images`, { name: 'x', description: 'x', permissions: ['read:volumes'] }),
  ],
  ['a user’s role is deleted', 'role', (app) => app.as('owner').delete(`${organization}/roles/role-images`)],
]

suite('another control process refuses an API key', () => {
  for (const [what, loses, change] of changes) {
    test(`if ${what}, another control process refuses the API key immediately`, async (context) => {
      // While the clock stands still, cached answers do not expire. Only the notification from the first control process can
      // then remove them.
      stopClock(context)
      await using app = await startControl()
      await app.database.sql`
        insert into roles (id, organization_id, name, description, permissions)
        values ('role-images', ${organizations.ours}, 'Images', 'x', '{write:snapshots}')`
      const person = await addPerson(app, { roleIds: ['role-images'], permissions: ['write:snapshots'] })
      await using second = await startSecond(app)
      // A request to make a snapshot, with an empty body, gets 400 if the caller may make snapshots, and 403 otherwise.
      const make = () => second.statusOf(person.key, 'POST', '/snapshots')
      assert.deepEqual([await make(), await second.statusOf(person.key, 'GET', '/users/me')], [400, 200])
      const { status } = await change(app, person)
      assert.ok(status < 300, `the change was answered ${status}`)
      await until(async () => (await make()) === (loses === 'key' ? 401 : 403), `the key was good for longer: ${what}`)
      assert.equal(await second.statusOf(person.key, 'GET', '/users/me'), loses === 'key' ? 401 : 200)
    })
  }
})

suite('an API key that becomes invalid is refused within a second', () => {
  const setUp = async (context: TestContext, check: (stage: Stage) => Promise<void>) => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { body } = await app.as('owner').post('/sandbox', { name: 'box' })
    await using second = await startSecond(app)
    const controlUrl = new URL(await second.app.server.listen({ host: '127.0.0.1', port: 0 }))
    await using desk = new AccessDesk({
      controlUrl,
      credential: { headers: { authorization: `Bearer ${keys.proxy}` } },
    })
    const person = await addPerson(app)
    const credentials = [{ kind: 'bearer', token: person.key }] as const
    const question: AccessQuestion = {
      sandboxIdOrName: body.id,
      credentials: [...credentials],
      countsAsActivity: false,
    }
    await check({ app, second, desk, question, person, pass: stopClock(context) })
  }
  type Stage = {
    app: TestControl
    second: Second
    desk: AccessDesk
    question: AccessQuestion
    person: AddedPerson
    pass: (milliseconds: number) => void
  }

  test('a gate soon refuses a removed member’s API key, even if another control process removed the member', (context) =>
    setUp(context, async ({ app, second, desk, question, person, pass }) => {
      assert.equal((await desk.ask(question)).isStarted, true)
      assert.equal((await app.as('owner').delete(`${organization}/users/${person.id}`)).status, 204)
      await until(
        async () => (await second.statusOf(person.key, 'GET', '/users/me')) === 401,
        'the other process never heard of it',
      )
      pass(1000)
      await assert.rejects(desk.ask(question), { code: 'unauthorized' })
      await assert.rejects(desk.ask(question), { code: 'unauthorized' })
    }))

  test('a control process that is not notified refuses a removed member’s API key within a second', (context) =>
    setUp(context, async ({ app, second, person, pass }) => {
      const me = () => second.statusOf(person.key, 'GET', '/users/me')
      assert.equal(await me(), 200)
      await app.database.sql`delete from members where user_id = ${person.id}`
      pass(1000)
      assert.equal(await me(), 401)
    }))
})
