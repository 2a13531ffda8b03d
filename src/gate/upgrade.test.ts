import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { accepted } from './testing/accepted.ts'
import { bodyOf, startSides } from './testing/simulated.ts'
import { previewHost } from './testing/visiting.ts'

const bearer = { authorization: 'Bearer key-1' }

suite('WebSocket upgrades at the gate', () => {
  /** Requests an upgrade from a server inside a sandbox. */
  const upgradeInside = (port: number) => upgrade(port, '/x', { ...bearer, host: previewHost })

  const upgrade = (port: number, path: string, headers: Record<string, string> = bearer) => {
    const request = httpRequest({
      port,
      path,
      headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'X-Daytona-Pty' },
    })
    request.end()
    return request
  }

  test('after an upgrade, bytes pass in both directions, and the caller gets the toolbox’s headers', async () => {
    await using sides = await startSides()
    let given: Record<string, unknown> = {}
    sides.toolbox.upgrade = (request, socket) => {
      given = { url: request.url, ...request.headers }
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Chosen: yes\r\n\r\n',
      )
      socket.pipe(socket)
    }
    const [answer, socket] = await once(upgrade(sides.port, '/toolbox/box/process/pty/1/connect'), 'upgrade')
    assert.equal(answer.headers['x-chosen'], 'yes')
    socket.write('ping')
    assert.equal(String((await once(socket, 'data'))[0]), 'ping')
    assert.deepEqual(
      [given['url'], given['sec-websocket-protocol'], given['authorization']],
      ['/toolbox/box-id/process/pty/1/connect', 'X-Daytona-Pty', undefined],
    )
    socket.destroy()
  })

  test('an upgrade that the gate or the toolbox refuses gets a plain HTTP answer', async () => {
    await using sides = await startSides()
    sides.toolbox.upgrade = (_request, socket) => {
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope')
    }
    const [own] = await once(upgrade(sides.port, '/toolbox/box/x', {}), 'response')
    assert.equal(own.statusCode, 401)
    assert.equal(JSON.parse(await bodyOf(own)).code, 'UNAUTHORIZED')
    const [theirs] = await once(upgrade(sides.port, '/toolbox/box/x'), 'response')
    assert.deepEqual([theirs.statusCode, await bodyOf(theirs)], [404, 'nope'])
  })

  test('if an upgrade request gets an ordinary answer, the answer ends when the caller disconnects', async () => {
    await using sides = await startSides()
    const inside = Promise.withResolvers<import('node:stream').Duplex>()
    sides.inside.upgrade = (_request, socket) => {
      socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\n\r\nand so on')
      inside.resolve(socket)
    }
    const [answer] = await once(upgradeInside(sides.port), 'response')
    const socket = await inside.promise
    const ended = once(socket.resume(), 'end')
    answer.destroy()
    await ended
    socket.destroy()
  })

  const upgrading = 'HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
  const asking = `/toolbox/box/x ${upgrading}`
  for (const [what, said, answer, isTalking] of [
    ['a refusal of the gate', asking, 'HTTP/1.1 401', true],
    ['an answer that is no upgrade', `/x ${upgrading}Authorization: Bearer key-1\r\n`, 'HTTP/1.1 404', true],
    ['a head that nobody can read', 'NONSENSE\r\n', 'HTTP/1.1 400', false],
  ] as const) {
    test(`after a failed upgrade (${what}), the gate soon closes a connection that its caller keeps open`, async () => {
      await using sides = await startSides({ lingerMs: 20 })
      sides.inside.upgrade = (_request, socket) => {
        socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope')
      }
      const caller = connect({ port: sides.port, host: '127.0.0.1', allowHalfOpen: true })
      let heard = ''
      caller.on('data', (data) => {
        heard += data
      })
      try {
        caller.write(`GET ${said}Host: ${said.startsWith('/x') ? previewHost : 'x'}\r\n\r\n`)
        const socket = await accepted(sides.port)
        await once(caller, 'end')
        if (isTalking) caller.write('x')
        if (!socket.destroyed) await once(socket, 'close')
      } finally {
        caller.destroy()
      }
      assert.equal(heard.split('\r\n')[0]?.slice(0, answer.length), answer)
    })
  }

  test('after an upgrade, if caller or server disconnects, the gate ends its connection to the other side', async () => {
    await using sides = await startSides()
    const inside = Promise.withResolvers<import('node:stream').Duplex>()
    let next = inside
    sides.inside.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      next.resolve(socket)
    }
    const [, first] = await once(upgradeInside(sides.port), 'upgrade')
    const firstInside = await inside.promise
    const insideEnded = once(firstInside, 'end')
    firstInside.resume()
    first.destroy()
    await insideEnded

    next = Promise.withResolvers()
    const [, second] = await once(upgradeInside(sides.port), 'upgrade')
    second.resume()
    const closed = once(second, 'close')
    ;(await next.promise).destroy()
    await closed
  })

  test('after an upgrade, a failing server’s last bytes reach the caller, even if the caller keeps sending', async () => {
    await using sides = await startSides()
    sides.inside.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.on('error', () => undefined)
      // Most of the input stays unread. So when the socket is closed, the sender of the input gets a reset.
      socket.once('data', () => {
        socket.pause()
        socket.write('last words', () => socket.destroy())
      })
    }
    for (let round = 0; round < 20; round++) {
      const [, socket] = await once(upgradeInside(sides.port), 'upgrade')
      socket.on('error', () => undefined)
      let heard = ''
      socket.on('data', (data: Buffer) => {
        heard += data
      })
      socket.write(Buffer.alloc(8 * 1024 * 1024))
      await once(socket, 'close')
      assert.equal(heard, 'last words')
    }
  })

  for (const [event, head] of [
    ['upgrade', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'],
    ['response', 'HTTP/1.1 200 OK\r\n\r\n'],
  ] as const) {
    test(`the connection of an upgrade counts as activity, and ends when its key is revoked (event: ${event})`, async () => {
      await using sides = await startSides({ presenceMs: 5 })
      sides.toolbox.upgrade = (_request, socket) => {
        socket.write(head)
        socket.on('error', () => undefined)
      }
      const again = Promise.withResolvers<void>()
      sides.control.answer = () => {
        if (sides.asked.length >= 3) again.resolve()
        return sides.access()
      }
      const [answer] = await once(upgrade(sides.port, '/toolbox/box/x'), event)
      await again.promise
      assert.ok(sides.asked.every(({ countsAsActivity }) => countsAsActivity))
      answer.socket.resume()
      const closed = once(answer.socket, 'close')
      sides.control.answer = () => ({ status: 401, body: {} })
      await closed
    })
  }
})
