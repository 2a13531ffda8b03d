import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { agentAt } from './agent.ts'
import { openAhead } from './connection.ts'
import { ReadySockets } from './ready-sockets.ts'
import { NativeAgent, until } from './testing/native-agent.ts'

const startServer = async () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-ready-'))
  const accepted: Socket[] = []
  const server = createServer((socket) => void accepted.push(socket.on('error', () => undefined)))
  const path = join(directory, 'agent.sock')
  server.listen(path)
  await once(server, 'listening')
  return {
    path,
    accepted,
    open: () => connect({ path, allowHalfOpen: true }).on('error', () => undefined),
    async [Symbol.asyncDispose]() {
      for (const socket of accepted) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

suite('connections to an agent that the gate opens before a call needs them', () => {
  test('a socket that the gate opens to an agent ahead of calls serves one call, and is then replaced', async () => {
    await using native = await NativeAgent.start('release')
    using sockets = new ReadySockets()
    using _ahead = openAhead(sockets)
    const agent = agentAt(native.socketPath)
    const first = await agent.info()
    await until(async () => sockets.size === 2, 'two are ready')
    for (let n = 0; n < 20; n++) assert.deepEqual(await agent.info(), first)
    const answers = await Promise.all(Array.from({ length: 20 }, () => agent.info()))
    assert.ok(answers.every(({ bootId }) => bootId === first.bootId))
    await until(async () => sockets.size === 2, 'two are ready')
  })

  test('the class `ReadySockets` removes an unused socket if the agent closes the socket or sends bytes', async () => {
    await using server = await startServer()
    using sockets = new ReadySockets()
    sockets.fill(server.path, server.open)
    await until(async () => server.accepted.length === 2, 'both are accepted')
    server.accepted[0]?.write('busy')
    server.accepted[1]?.end()
    await until(async () => sockets.size === 0, 'both are given up')
    assert.equal(sockets.take(server.path), undefined)
  })

  test('no call gets a socket opened ahead that is closed or has received bytes, even before its events', () => {
    using sockets = new ReadySockets()
    const [closed, told] = [new Socket(), new Socket()]
    const opened = [closed, told]
    sockets.fill('agent', () => opened.shift()!)
    closed.destroy()
    told.push('busy')
    assert.equal(sockets.take('agent'), undefined)
    assert.deepEqual([sockets.size, told.destroyed], [0, true])
  })

  test('sockets that the gate opens to agents before a call are limited, and closed if unused for a while', async () => {
    await using server = await startServer()
    using sockets = new ReadySockets({ each: 2, all: 3, idleMs: 200 })
    sockets.fill(server.path, server.open)
    sockets.fill(`${server.path}/other`, server.open)
    assert.equal(sockets.size, 3)
    await until(async () => sockets.size === 0, 'all are given back')
  })
})
