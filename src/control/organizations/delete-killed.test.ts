// The end of an organization when control dies in the middle of it: the program itself, killed without a warning.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import type { TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { newEncryptionKey } from '../storage/encryption.ts'

const program = join(import.meta.dirname, '../../../bin/control.ts')

const freePort = async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

const kill = async (child: ChildProcess) => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
}

suite('DELETE /organizations/{organizationId}, and control is killed', () => {
  for (const milliseconds of [5, 40]) {
    test(`${milliseconds} ms after it was asked: all of it ends all the same, or nothing has happened`, async () => {
      await using opened = await openTestDatabase()
      const { sql } = opened.database
      const port = await freePort()
      const base = `http://127.0.0.1:${port}`
      const start = async () => {
        const child = fork(program, {
          env: {
            PATH: process.env['PATH'],
            ALCOVE_LOG_LEVEL: 'error',
            ALCOVE_DATABASE_URL: opened.url,
            ALCOVE_LISTEN: `127.0.0.1:${port}`,
            ALCOVE_PUBLIC_URL: base,
            ALCOVE_PROXY_URL: 'http://127.0.0.1:1',
            ALCOVE_PROXY_KEY: keys.proxy,
            ALCOVE_RUNNER_KEY: keys.runner,
            ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
            ALCOVE_MOST_WARM: '0',
            ALCOVE_OVERCOMMIT: '64,8,8',
          },
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        })
        const ended = once(child, 'exit').then(() => assert.fail('control does not start'))
        ended.catch(() => {})
        await Promise.race([once(child, 'message'), ended])
        return child
      }
      const call = async (method: string, path: string, token: string, body?: object) => {
        const reply = await fetch(`${base}/api${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
          ...(body ? { body: JSON.stringify(body) } : {}),
        })
        const text = await reply.text()
        return { status: reply.status, body: text === '' ? undefined : JSON.parse(text), headers: {}, text }
      }
      const remote = {
        listen: async () => base,
        with: (token: string) => ({ get: (path: string) => call('GET', path, token) }),
      } as unknown as Pick<TestControl, 'with' | 'listen'>

      let control = await start()
      await using runner = await connectRunner(remote)
      try {
        for (const name of ['one', 'two', 'three']) {
          assert.equal((await call('POST', '/sandbox', keys.member, { name })).status, 200)
        }
        const path = `/organizations/${organizations.ours}`
        const asked = call('DELETE', path, keys.owner).catch(() => undefined)
        await pause(milliseconds)
        await kill(control)
        await asked
        await runner.cut()
        control = await start()
        await runner.link()
        const again = (await call('DELETE', path, keys.owner)).status
        // Nothing had happened yet, or no key is left.
        assert.ok(again === 204 || again === 401, String(again))
        for (const end = Date.now() + 20_000; runner.has.size > 0 && Date.now() < end; ) await pause(50)
        assert.equal(runner.has.size, 0)
        const left = () => sql`select id from sandboxes where organization_id = ${organizations.ours}`
        for (const end = Date.now() + 20_000; (await left()).length > 0 && Date.now() < end; ) await pause(50)
        assert.deepEqual([...(await left())], [])
      } finally {
        await kill(control)
      }
    })
  }
})
