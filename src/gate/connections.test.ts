import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { startSides } from './testing/simulated.ts'
import { key, openedBy, previewHost } from './testing/visiting.ts'

const opened = async (port: number, count: number, localAddress = '127.0.0.1'): Promise<Disposable> => {
  const sockets: Socket[] = []
  for (let index = 0; index < count; index++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined)
    await once(socket, 'connect')
    sockets.push(socket)
  }
  return { [Symbol.dispose]: () => void sockets.map((socket) => socket.destroy()) }
}

const upgrading = { connection: 'Upgrade', upgrade: 'websocket' }

suite('limits of connections to the gate', () => {
  test('many silent connections without credentials evict no toolbox call and prevent no new call', async () => {
    await using sides = await startSides({ connections: { most: 16, mostHeld: 8, mostUnknownOfOne: 4 } })
    const held = Promise.withResolvers<() => void>()
    sides.toolbox.call = (_request, response) => {
      response.write('begun ')
      held.resolve(() => response.end('ended'))
    }
    sides.toolbox.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    }
    const reply = await fetch(`${sides.url}/toolbox/box/held`, { headers: key })
    const upgrade = request({ port: sides.port, path: '/toolbox/box/x', headers: { ...key, ...upgrading } })
    const [, socket] = (await once(upgrade.end(), 'upgrade')) as [IncomingMessage, Duplex]
    try {
      const end = await held.promise
      sides.toolbox.call = (_request, response) => void response.end('hello')
      for (const address of [1, 2, 3, 4, 5].map((last) => `127.0.0.${last}`)) {
        using _strangers = await opened(sides.port, 30, address)
        const other = await fetch(`${sides.url}/toolbox/box/other`, { headers: key })
        assert.equal(await other.text(), 'hello')
      }
      socket.write('ping')
      assert.equal(String((await once(socket, 'data'))[0]), 'ping')
      end()
      assert.equal(await reply.text(), 'begun ended')
    } finally {
      socket.destroy()
    }
  })

  test('a visitor counts for the preview’s owner; the gate evicts visitors only of owners with more visitors', async () => {
    await using sides = await startSides({ connections: { mostHeld: 4 } })
    const inside: { end: () => void; gone: Promise<unknown> }[] = []
    sides.inside.call = (_request, response) => {
      response.write('begun')
      inside.push({ end: () => response.end('ended'), gone: once(response, 'close') })
    }
    let visits = 0
    const visit = async (organizationId: string, opened: 'public' | 'bearer' = 'public') => {
      // Each visit is to a new sandbox. For a sandbox that was visited before, the gate would use control's cached answer.
      visits += 1
      const sandboxId = `box-${visits}`
      sides.control.answer = () => sides.access({ organizationId, openedBy: opened, sandboxId })
      const headers = { host: `3000-${sandboxId}.proxy.test:4601`, ...(opened === 'bearer' ? key : {}) }
      const [reply] = (await once(
        request({ port: sides.port, host: '127.0.0.1', headers, agent: false }).end(),
        'response',
      )) as [IncomingMessage]
      reply.on('error', () => undefined).resume()
      return { reply, gone: new Promise((resolve) => reply.once('close', resolve)) }
    }
    const [first, ...others] = [await visit('large'), await visit('large'), await visit('large')]
    const small = await visit('small')
    try {
      assert.equal((await visit('large')).reply.statusCode, 503)
      assert.equal((await visit('small')).reply.statusCode, 200)
      await first?.gone
      // The limit is reached, so a call with an API key closes a preview connection of its own organization.
      assert.equal((await visit('small', 'bearer')).reply.statusCode, 200)
      await small.gone
      assert.ok(others.every(({ reply }) => !reply.destroyed))
    } finally {
      for (const { end } of inside) end()
    }
  })

  test('visitors of a public preview are evicted only for callers from their address, longest silent first', async () => {
    await using sides = await startSides({ connections: { mostUnknownOfOne: 4 } })
    openedBy(sides, 'public')
    sides.inside.call = (_request, response) => void response.write('begun')
    const visitor = () => request({ port: sides.port, host: '127.0.0.1', headers: { host: previewHost }, agent: false })
    const visits: { reply: IncomingMessage; gone: Promise<unknown> }[] = []
    for (let index = 0; index < 4; index++) {
      const [reply] = (await once(visitor().end(), 'response')) as [IncomingMessage]
      reply.on('error', () => undefined).resume()
      visits.push({ reply, gone: new Promise((resolve) => reply.once('close', resolve)) })
    }
    const [first, second] = visits
    try {
      using _others = await opened(sides.port, 12, '127.0.0.2')
      assert.ok(visits.every(({ reply }) => !reply.destroyed))
      using _same = await opened(sides.port, 6)
      await first?.gone
      assert.ok(!second?.reply.destroyed)
    } finally {
      for (const { reply } of visits) reply.destroy()
    }
  })
})
