// Tests a server with settings that other tests do not use: DATABASE_URL names an external PostgreSQL, and ALCOVE_SUDO
// forbids sudo.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Database, openDatabase } from '#src/control/storage/database.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { sandboxStates } from '#src/wire/sandbox-state.ts'
import { startTestPostgres, type TestPostgres } from '#test/control/test-postgres.ts'
import { type Box, boxOf, createBox, until } from './box.ts'
import { type Platform, platform, startUp } from './harness.ts'
import { listUnnamedTraces } from './host.ts'

/** The 21 states of a sandbox that the API can show and from which the sandbox can be deleted. */
const states = sandboxStates.filter((state) => state !== 'destroyed')

const goneWithinSeconds = 10

/** The states into which the test brings a sandbox by an API call, each with the verb of that call. */
const ways: Record<string, string> = { stopped: 'stop', paused: 'pause', archived: 'archive' }

const reach = async (alcove: Platform, box: Box, state: string) => {
  const verb = ways[state]
  if (verb === undefined) return
  await alcove.api('POST', `/sandbox/${box.id}/${verb}?force=true`)
  const seen = async () => String((await alcove.api('GET', `/sandbox/${box.id}`)).body['state'])
  await until(`it is ${state}`, async () => (await seen()) === state, 60)
}

const filesBelow = (directory: string) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)

suite('a server with an external PostgreSQL and without sudo', () => {
  let database: TestPostgres
  let db: Database
  let alcove: Platform
  before(async () => {
    database = await startTestPostgres()
    db = openDatabase(database.url)
    const env = { DATABASE_URL: database.url, ALCOVE_SUDO: 'false' }
    alcove = await platform({ own: true, image: 'small', env })
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
    await db?.close()
    await database?.stop()
  })

  // This must be the first test, because it compares the host before and after its sandboxes. The server keeps the network
  // namespaces of earlier sandboxes for new sandboxes. These namespaces could hide what this test's sandboxes leave.
  test('a sandbox in any of the 21 states can be deleted within ten seconds, and leaves nothing on the host', async () => {
    const data = dataDirectoryAt(alcove.data)
    const store = join(alcove.data, 'archive')
    const before = listUnnamedTraces(data)
    const boxes = new Map<string, Box>()
    const create = async (state: string) =>
      boxes.set(state, await createBox(alcove, { name: state, autoStopInterval: 0, networkAllowList: '192.0.2.0/24' }))
    for (let at = 0; at < states.length; at += 3) await Promise.all(states.slice(at, at + 3).map(create))
    await Promise.all([...boxes].map(([state, box]) => reach(alcove, box, state)))
    assert.ok(filesBelow(store).length > 0 && listUnnamedTraces(data).length > before.length)
    // API calls have already brought sandboxes into the states that are listed in `ways`. Write the other states into the database,
    // because most of them are short or follow a fault.
    for (const [state, { id }] of boxes) {
      if (ways[state] === undefined)
        await db.sql`
          update sandboxes set state = ${state}, version = version + 1, state_changed_at = now() - interval '1 minute'
          where id = ${id}`
    }
    await db.sql`
      update sandboxes set desired_state = 'destroyed', generation = generation + 1, stuck_at = now() + interval '1 minute'
      where state = 'destroying'`
    for (const [state, { id }] of boxes) {
      // The database says that the sandbox in the state `destroying` is being deleted already, so a delete answers 404.
      const { status } = await alcove.api('DELETE', `/sandbox/${id}`)
      assert.equal(status, state === 'destroying' ? 404 : 200, state)
      const isGone = async () => (await alcove.api('GET', `/sandbox/${id}`)).status === 404
      await until(`what was ${state} is 404`, isGone, goneWithinSeconds)
      const left = async () => (await alcove.leftovers()).filter((line) => line.includes(id))
      await until(`nothing is left of what was ${state}`, async () => (await left()).length === 0, goneWithinSeconds)
    }
    assert.deepEqual(await alcove.leftovers(), [])
    assert.deepEqual(filesBelow(store), [])
    // Make btrfs write to its device, because it removes the limits of deleted disks only during a write.
    execFileSync('btrfs', ['filesystem', 'sync', join(data.runner, 'pool')])
    const left = () => listUnnamedTraces(data).filter((line) => !before.includes(line))
    await until('no limit and no rule is left', () => left().length === 0, goneWithinSeconds).catch((error) => {
      throw new Error(left().join('\n'), { cause: error })
    })
  })

  test('if the operator forbids sudo, a sandbox has no program sudo, and the agent opens no socket for sudo', async () => {
    await using box = await createBox(alcove)
    assert.equal((await box.try('command -v sudo')).exitCode, 1)
    assert.equal(await box.run('ls /dev/.alcove'), 'agent')
    const { exitCode, result } = await box.try('ln -s /dev/.alcove/agent /tmp/sudo; /tmp/sudo id 2>&1')
    assert.deepEqual([exitCode, result.trim()], [1, 'sudo: this sandbox does not offer sudo'])
  })

  test('with the setting DATABASE_URL, a restarted server finds its sandboxes in that database', async () => {
    await assert.rejects(alcove.kill('postgres'), /postgres does not run/)
    const box = await createBox(alcove, { name: 'elsewhere' })
    assert.equal(await box.run('echo hello'), 'hello')
    await alcove.killAll()
    await alcove.start()
    const { status, body } = await alcove.api('GET', '/sandbox/elsewhere')
    assert.deepEqual([status, body['id'], body['state']], [200, box.id, 'started'])
    await until('it answers', async () => {
      const { status } = await boxOf(alcove, body).toolbox('POST', '/process/execute', { command: 'true' })
      return status === 200
    })

    // A runner must not start with a database that does not list its sandboxes, because it would remove the unlisted sandboxes
    // after a day.
    const other = await startTestPostgres()
    try {
      await alcove.stop()
      const wrong = startUp(alcove.data, Number(new URL(alcove.url).port), { DATABASE_URL: other.url })
      await assert.rejects(wrong, /runner does not start: the sandboxes in .* are in another database/)
    } finally {
      await other.stop()
    }
    await alcove.start()
    assert.equal(await box.run('echo again'), 'again')
    await alcove.api('DELETE', `/sandbox/${box.id}`)
  })
})
