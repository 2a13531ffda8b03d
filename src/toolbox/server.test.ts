import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { silentLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { type Called, createToolboxServer, Toolbox } from './server.ts'
import { assignmentWith } from './testing/assignment.ts'
import { calledFor } from './testing/called.ts'

const sandboxThatIs = (status: SandboxHere['status']): SandboxHere => ({
  id: 'box',
  assignment: assignmentWith({ sandboxId: 'box' }),
  status,
  socketPath: '/nowhere',
})

const start = (calledBy: (request: unknown, sandboxId: string) => Called | undefined) =>
  createToolboxServer({ calledBy, executeTimeoutSeconds: 10, log: silentLog() })

suite('the toolbox server', () => {
  test('a call to a paused sandbox answers 409 without waiting for its agent', async () => {
    const server = await start(() => calledFor(sandboxThatIs('paused')))
    const answer = await server.inject({ method: 'GET', url: '/toolbox/box/work-dir' })
    const { message, path } = answer.json()
    assert.deepEqual(
      [answer.statusCode, message, path],
      [409, 'The sandbox is paused. Is the Sandbox started?', '/work-dir'],
    )
  })

  test('GET /system/metrics answers 200 for a started or paused sandbox, 409 for a stopped, 404 for an unknown sandbox', async () => {
    const reading = { cpuCount: 1, cpuUsedPct: 25, memTotal: 8, memUsed: 4, memCache: 2, diskTotal: 100, diskUsed: 30 }
    let status: SandboxHere['status'] = 'started'
    let measured: typeof reading | undefined = reading
    const server = await start((_, id) =>
      id === 'box' ? calledFor(sandboxThatIs(status), { measure: async () => measured }) : undefined,
    )
    const ask = (id = 'box') => server.inject({ method: 'GET', url: `/toolbox/${id}/system/metrics` })
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
  })

  test('`upgrade` of a toolbox returns 101 as soon as the WebSocket is open, and throws if it is refused', async () => {
    const open = (status: SandboxHere['status']) =>
      Toolbox.open({ calledBy: () => calledFor(sandboxThatIs(status)), executeTimeoutSeconds: 10, log: silentLog() })
    await using started = await open('started')
    await using stopped = await open('stopped')
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const upgrade = async (toolbox: Toolbox) => {
      const { port } = server.address() as AddressInfo
      const client = new WebSocket(`ws://127.0.0.1:${port}/toolbox/box/ssh/command`).on('error', () => undefined)
      const [request, socket, head] = await once(server, 'upgrade')
      client.once('open', () => client.terminate())
      return await toolbox.upgrade(request, socket, head).finally(() => socket.destroy())
    }
    try {
      assert.equal(await upgrade(started), 101)
      await assert.rejects(upgrade(stopped), { code: 'not_started' })
    } finally {
      server.close()
    }
  })

  test('the gate refuses an unauthorized toolbox call without reading its body', async () => {
    const server = await start(() => {
      throw new Problem('unauthorized')
    })
    const answer = await server.inject({ method: 'POST', url: '/toolbox/box/process/execute', payload: 'nonsense' })
    assert.equal(answer.statusCode, 401)
  })
})
