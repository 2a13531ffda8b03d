import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { needsRoot } from '#test/needs-root.ts'
import { createToolboxServer, listenOn } from './api.ts'
import type { HeldSandbox } from './host.ts'
import { assigned } from './testing/simulated-host.ts'

suite('the toolbox server', { skip: needsRoot }, () => {
  test('listens for one group only, also where a former runner left its socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-api-'))
    const path = join(directory, 'runner.sock')
    writeFileSync(path, 'left over')
    const server = await createToolboxServer({ host: { get: () => undefined }, log: silentLog() })
    try {
      await listenOn(server, path, 4242)
      const { mode, gid, uid } = statSync(path)
      assert.deepEqual([(mode & 0o777).toString(8), uid, gid], ['660', 0, 4242])
      const [answer] = await once(get({ socketPath: path, path: '/healthz', agent: false }), 'response')
      assert.equal(answer.statusCode, 200)
      answer.resume()
    } finally {
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('409 at once for a sandbox that is paused: its agent could not answer', async () => {
    const assignment = assigned('box', 1)
    const host = { get: () => ({ id: 'box', assignment, status: 'paused' as const, socketPath: '/nowhere' }) }
    const server = await createToolboxServer({ host, log: silentLog() })
    try {
      const answer = await server.inject({ method: 'GET', url: '/toolbox/box/work-dir' })
      const { message, path } = answer.json()
      assert.deepEqual(
        [answer.statusCode, message, path],
        [409, 'The sandbox is paused. Is the Sandbox started?', '/work-dir'],
      )
    } finally {
      await server.close()
    }
  })

  test('GET /system/metrics: 200 tells what a sandbox uses, paused or not; 409 for one that has stopped, and 404 for none', async () => {
    const reading = { cpuCount: 1, cpuUsedPct: 25, memTotal: 8, memUsed: 4, memCache: 2, diskTotal: 100, diskUsed: 30 }
    const assignment = assigned('box', 1)
    let status: HeldSandbox['status'] = 'started'
    let measured: typeof reading | undefined = reading
    const host = {
      get: (id: string) => (id === 'box' ? { id, assignment, status, socketPath: '/nowhere' } : undefined),
      measure: async () => measured,
    }
    const server = await createToolboxServer({ host, log: silentLog() })
    const ask = (id = 'box') => server.inject({ method: 'GET', url: `/toolbox/${id}/system/metrics` })
    try {
      for (status of ['started', 'paused'] as const) {
        const answer = await ask()
        const { timestamp, timestampUnix, ...rest } = answer.json()
        assert.deepEqual([answer.statusCode, rest], [200, { ...reading, diskFree: 70 }])
        assert.equal(timestampUnix, Math.floor(Date.parse(timestamp) / 1000))
      }
      for (status of ['stopped', 'archived', 'error'] as const) assert.equal((await ask()).statusCode, 409)
      assert.equal((await ask('other')).statusCode, 404)
      status = 'started'
      measured = undefined
      assert.equal((await ask()).statusCode, 409)
    } finally {
      await server.close()
    }
  })
})
