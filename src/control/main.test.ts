// Runs control as `up` runs it: as a separate process with its settings in the environment.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { keys } from '#test/control/people.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { newKey } from './auth/secret.ts'
import { newEncryptionKey } from './storage/encryption.ts'

const program = join(import.meta.dirname, '../../bin/control.ts')

const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

const start = (env: Record<string, string>) =>
  fork(program, {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...env,
      ALCOVE_LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })

/** Returns an object for `await using`. At the end of the test, even of a failed test, this object kills the process. */
const ending = (child: ChildProcess): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  },
})

const settings = (port: number) => ({
  ALCOVE_LISTEN: `127.0.0.1:${port}`,
  ALCOVE_PUBLIC_URL: `http://127.0.0.1:${port}`,
  ALCOVE_PROXY_URL: 'http://127.0.0.1:1',
  ALCOVE_PROXY_KEY: keys.proxy,
  ALCOVE_RUNNER_KEY: keys.runner,
  ALCOVE_MOST_WARM: '0',
  ALCOVE_OVERCOMMIT: '64,8,8',
  ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
})

suite('control as a program', () => {
  test('control migrates an empty database, accepts the key ALCOVE_FIRST_KEY, and exits with 0 on SIGTERM', async () => {
    await using opened = await openTestDatabase('empty')
    const port = await freePort()
    const firstKey = newKey()
    const child = start({ ...settings(port), ALCOVE_DATABASE_URL: opened.url, ALCOVE_FIRST_KEY: firstKey })
    await using _ended = ending(child)
    assert.deepEqual((await once(child, 'message'))[0], { type: 'ready' })
    const reply = await fetch(`http://127.0.0.1:${port}/api/users/me`, {
      headers: { authorization: `Bearer ${firstKey}` },
    })
    assert.deepEqual([reply.status, ((await reply.json()) as { email: string }).email], [200, 'admin@localhost'])
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    assert.deepEqual(await exit, [0, null])
  })

  test('if its database is unreachable, control prints the address without the password and exits with 1', async () => {
    const port = await freePort()
    const child = start({ ...settings(1), ALCOVE_DATABASE_URL: `postgres://me:hidden@127.0.0.1:${port}/alcove` })
    await using _ended = ending(child)
    let said = ''
    child.stderr?.on('data', (data) => {
      said += data
    })
    const told: unknown[] = []
    child.on('message', (message) => told.push(message))
    const [code] = await once(child, 'close')
    const why = `the database of DATABASE_URL (127.0.0.1:${port}) cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`
    assert.deepEqual([code, told], [1, [{ type: 'barred', why }]])
    const { level, msg } = JSON.parse(said.trim().split('\n').at(-1) ?? '')
    assert.deepEqual([level, msg], [60, why])
    assert.doesNotMatch(said, /hidden/)
  })

  test('if settings are missing, control prints the names of all missing settings and exits with 1', async () => {
    const child = start({})
    await using _ended = ending(child)
    let said = ''
    child.stderr?.on('data', (data) => {
      said += data
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(said, /ALCOVE_DATABASE_URL is missing/)
    assert.match(said, /ALCOVE_PROXY_URL is missing/)
  })
})
