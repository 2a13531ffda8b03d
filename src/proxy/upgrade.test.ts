import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { bodyOf, startSides } from './testing/simulated.ts'

const bearer = { authorization: 'Bearer key-1' }

/** The proxy's end of the next connection to it. */
const accepted = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const look = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      if (socket.localPort !== port) return
      unsubscribe('net.server.socket', look)
      resolve(socket)
    }
    subscribe('net.server.socket', look)
  })

suite('proxy: upgrades', () => {
  const upgrade = (port: number, path: string, headers: Record<string, string> = bearer) => {
    const request = httpRequest({
      port,
      path,
      headers: { ...headers, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-protocol': 'X-Daytona-Pty' },
    })
    request.end()
    return request
  }

  test('bytes pass both ways after the toolbox agreed, its headers with its agreement', async () => {
    await using sides = await startSides()
    let given: Record<string, unknown> = {}
    sides.runner.upgrade = (request, socket) => {
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

  const terminals = ['/toolbox/box/process/pty/create-connect?id=a', '/toolbox/box/process/pty/a/connect']
  const interpreter = '/toolbox/box/process/interpreter/execute'
  const followedLogs = '/toolbox/box/process/session/s/command/c/logs?follow=true'

  /** Says something at once, as an interpreter's client does, and answers what it is told and how it is closed. */
  const converse = async (
    port: number,
    path: string,
    headers: Record<string, string>,
    { says = '{"code":"1"}', protocol = 'X-Daytona-Pty-Exit-Control' } = {},
  ) => {
    const client = new WebSocket(`ws://127.0.0.1:${port}${path}`, [protocol], { headers })
    client.once('open', () => client.send(says))
    const closed = once(client, 'close')
    const [message] = await once(client, 'message')
    const [code, reason] = await closed
    return { said: JSON.parse(String(message)), code, reason: String(reason) }
  }

  test('a terminal and an interpreter of a sandbox that is not started are told so after the upgrade', async () => {
    await using sides = await startSides()
    for (const state of ['stopped', 'archived', 'error']) {
      sides.control.answer = () => sides.access({ isStarted: false, state })
      const sentence = `The sandbox is not started: it is ${state}. Is the Sandbox started?`
      for (const path of terminals) {
        const { said, code, reason } = await converse(sides.port, path, bearer)
        assert.deepEqual(said, { type: 'control', status: 'error', error: sentence })
        assert.deepEqual([code, JSON.parse(reason)], [1011, { error: sentence }])
      }
      const { said, code, reason } = await converse(sides.port, interpreter, bearer)
      assert.deepEqual(said, { type: 'error', name: 'InterpreterUnavailable', value: sentence, traceback: '' })
      assert.deepEqual([code, reason], [1011, sentence])
    }
    assert.equal(sides.seen.length, 0)
  })

  test('they are told so too where only the runner knows yet that the sandbox is not started', async () => {
    await using sides = await startSides()
    sides.runner.upgrade = (_request, socket) => {
      socket.end('HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}')
    }
    for (const path of [...terminals, interpreter]) {
      const { said, code } = await converse(sides.port, path, bearer)
      assert.match(said.error ?? said.value, /Is the Sandbox started\?$/)
      assert.equal(code, 1011)
    }
  })

  for (const [who, more, offer] of [
    ['an SDK', { 'x-daytona-sdk-version': '0.216.0' }, {}],
    ['an SDK that sets no headers', {}, { protocol: 'X-Daytona-SDK-Version~0.216.0' }],
    ['a browser', { origin: 'http://page.test' }, {}],
  ] as const) {
    test(`${who} is told after the upgrade why a terminal or an interpreter is refused, whatever the reason`, async () => {
      await using sides = await startSides()
      const headers = { ...bearer, ...more }
      for (const [status, sentence] of [
        [401, 'no such key'],
        [403, 'not yours'],
        [404, 'Sandbox with ID or name box not found'],
        [410, 'it expired'],
        [429, 'too often'],
        [500, 'control does not answer'],
      ] as const) {
        sides.control.answer = () => ({ status, body: { message: sentence } })
        for (const path of [...terminals, interpreter]) {
          const { said, code } = await converse(sides.port, path, headers, offer)
          assert.ok((said.error ?? said.value).startsWith(status === 500 ? 'The control service' : sentence))
          assert.equal(code, 1011)
        }
      }
      sides.control.answer = () => sides.access()
      const body = '{"message":"This sandbox has too many terminals."}'
      sides.runner.upgrade = (_request, socket) => {
        const head = `HTTP/1.1 429 Too Many Requests\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`
        socket.end(head + body)
      }
      const { said } = await converse(sides.port, terminals[0]!, headers, offer)
      assert.match(said.error, /^This sandbox has too many terminals/)
    })
  }

  test('a caller who sends much before it reads hears the reason all the same', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    const { code, reason } = await converse(sides.port, interpreter, bearer, {
      says: 'x'.repeat(3 * 1024 * 1024),
    })
    assert.deepEqual([code, reason.slice(0, 26)], [1011, 'The sandbox is not started'])
  })

  test('a refused caller who keeps the connection open loses it within a bound', async () => {
    await using sides = await startSides({ lingerMs: 20 })
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    const caller = connect({ port: sides.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    try {
      caller.write(
        `GET ${interpreter} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-1\r\nConnection: Upgrade\r\n` +
          'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      )
      const socket = await accepted(sides.port)
      if (!socket.destroyed) await once(socket, 'close')
    } finally {
      caller.destroy()
    }
  })

  test('refusals are plain HTTP for followed logs, for clients that can read them, and for what is no WebSocket', async () => {
    await using sides = await startSides()
    const statusOf = async (path: string, headers: Record<string, string>) => {
      const client = new WebSocket(`ws://127.0.0.1:${sides.port}${path}`, { headers })
      client.on('error', () => undefined)
      const [, answer] = await once(client, 'unexpected-response')
      client.terminate()
      return answer.statusCode
    }
    const sdk = { ...bearer, 'x-daytona-sdk-version': '0.216.0' }
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    assert.equal(await statusOf(followedLogs, sdk), 409)
    const [raw] = await once(upgrade(sides.port, interpreter, sdk), 'response')
    assert.equal(raw.statusCode, 409)
    sides.control.answer = () => ({ status: 404, body: { message: 'none' } })
    for (const path of [...terminals, interpreter]) assert.equal(await statusOf(path, bearer), 404)
    assert.equal(await statusOf('/toolbox/box/x', sdk), 404)
  })

  test('refusals come before the upgrade, as plain HTTP: the proxy’s own and the toolbox’s', async () => {
    await using sides = await startSides()
    sides.runner.upgrade = (_request, socket) => {
      socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope')
    }
    const [own] = await once(upgrade(sides.port, '/toolbox/box/x', {}), 'response')
    assert.equal(own.statusCode, 401)
    assert.equal(JSON.parse(await bodyOf(own)).code, 'UNAUTHORIZED')
    const [theirs] = await once(upgrade(sides.port, '/toolbox/box/x'), 'response')
    assert.deepEqual([theirs.statusCode, await bodyOf(theirs)], [404, 'nope'])
  })

  test('an answer that is no upgrade ends with its caller', async () => {
    await using sides = await startSides()
    const inside = Promise.withResolvers<import('node:stream').Duplex>()
    sides.runner.upgrade = (_request, socket) => {
      socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\n\r\nand so on')
      inside.resolve(socket)
    }
    const [answer] = await once(upgrade(sides.port, '/toolbox/box/x'), 'response')
    const socket = await inside.promise
    const ended = once(socket.resume(), 'end')
    answer.destroy()
    await ended
    socket.destroy()
  })

  const asking = '/toolbox/box/x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'
  for (const [what, said, answer, isTalking] of [
    ['a refusal of the proxy', asking, 'HTTP/1.1 401', true],
    ['an answer that is no upgrade', `${asking}Authorization: Bearer key-1\r\n`, 'HTTP/1.1 404', true],
    ['a head that nobody can read', 'NONSENSE\r\n', 'HTTP/1.1 400', false],
  ] as const) {
    test(`a connection is gone soon after ${what}, although its caller keeps it open`, async () => {
      await using sides = await startSides({ lingerMs: 20 })
      sides.runner.upgrade = (_request, socket) => {
        socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope')
      }
      const caller = connect({ port: sides.port, host: '127.0.0.1', allowHalfOpen: true })
      let heard = ''
      caller.on('data', (data) => {
        heard += data
      })
      try {
        caller.write(`GET ${said}Host: x\r\n\r\n`)
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

  test('each side’s end ends the other', async () => {
    await using sides = await startSides()
    const inside = Promise.withResolvers<import('node:stream').Duplex>()
    let next = inside
    sides.runner.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      next.resolve(socket)
    }
    const [, first] = await once(upgrade(sides.port, '/toolbox/box/x'), 'upgrade')
    const firstInside = await inside.promise
    const insideEnded = once(firstInside, 'end')
    firstInside.resume()
    first.destroy()
    await insideEnded

    next = Promise.withResolvers()
    const [, second] = await once(upgrade(sides.port, '/toolbox/box/x'), 'upgrade')
    second.resume()
    const closed = once(second, 'close')
    ;(await next.promise).destroy()
    await closed
  })

  test('what a side said before it failed still arrives, although the other goes on sending', async () => {
    await using sides = await startSides()
    sides.runner.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.on('error', () => undefined)
      // With most of what comes unread, so that whoever writes more is told of a broken connection.
      socket.once('data', () => {
        socket.pause()
        socket.write('last words', () => socket.destroy())
      })
    }
    for (let round = 0; round < 20; round++) {
      const [, socket] = await once(upgrade(sides.port, '/toolbox/box/x'), 'upgrade')
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
    test(`an open connection counts as activity, and ends when its key is revoked: ${event}`, async () => {
      await using sides = await startSides({ presenceMs: 5 })
      sides.runner.upgrade = (_request, socket) => {
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
