// Tests an upgrade: two control processes behind a load balancer are restarted one after the other, while clients make calls.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { startControlProcess } from './control-process.ts'
import { keys } from './people.ts'
import { openTestDatabase } from './test-database.ts'

const balancer = join(import.meta.dirname, '../hosts/balancer.ts')
const addresses = ['127.0.0.41', '127.0.0.42']
const front = '127.0.0.40'
const port = 46_230
const clients = 4
const mostTries = 5

/** Makes a call as an SDK with retries does: again after a lost connection or a 503, up to `mostTries` tries. */
const call = async (method: string, path: string, body?: object): Promise<number> => {
  let last: unknown
  for (let attempt = 0; attempt < mostTries; attempt += 1) {
    if (attempt > 0) await pause(100 * 2 ** attempt)
    try {
      const reply = await fetch(`http://${front}:${port}/api${path}`, {
        method,
        headers: { authorization: `Bearer ${keys.owner}`, ...(body ? { 'content-type': 'application/json' } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
        signal: AbortSignal.timeout(10_000),
      })
      await reply.text()
      if (reply.status !== 503) return reply.status
      last = reply.status
    } catch (error) {
      last = error
    }
  }
  throw new Error(`${method} ${path} failed ${mostTries} times`, { cause: last })
}

suite('an upgrade of two control processes, one after the other', () => {
  test('while control processes are restarted in turn, calls that are retried succeed and act only once', async () => {
    await using opened = await openTestDatabase()
    const { database } = opened
    const start = (address: string) => startControlProcess(opened.url, { ALCOVE_LISTEN: `${address}:${port}` })
    const controls = [await start(addresses[0]!), await start(addresses[1]!)]
    const passing = spawn(process.execPath, [balancer, front, `${port}=${addresses.join(',')}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      await once(passing.stdout, 'data')
      let isOver = false
      const made = new Set<string>()
      let calls = 0
      const use = async (client: number) => {
        for (let turn = 0; !isOver; turn += 1) {
          // An organization may have only 100 volumes, so a client that gets many turns asks for its last volume again.
          const name = `volume-${client}-${Math.min(turn, 19)}`
          // The answer is 409 if an earlier turn made the volume, or an earlier try made it but the answer to that try was lost.
          const status = await call('POST', '/volumes', { name })
          assert.ok(status === 200 || status === 201 || status === 409, String(status))
          made.add(name)
          calls += 1
          assert.equal(await call('GET', `/volumes/by-name/${name}`), 200)
          assert.equal(await call('GET', '/sandbox'), 200)
          await pause(200)
        }
      }
      const load = Promise.all(Array.from({ length: clients }, (_, client) => use(client)))
      load.catch(() => {})
      for (const [at, address] of addresses.entries()) {
        await pause(500)
        await controls[at]!.stop()
        await pause(500)
        controls[at] = await start(address)
      }
      await pause(500)
      isOver = true
      await load
      const rows = await database.sql<{ name: string }[]>`select name from volumes`
      assert.deepEqual(rows.map(({ name }) => name).toSorted(), [...made].toSorted())
      assert.ok(calls > 20, `${calls} calls`)
    } finally {
      passing.kill('SIGKILL')
      for (const control of controls) await control.kill()
    }
  })
})
