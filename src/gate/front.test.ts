import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import { startSides } from './testing/simulated.ts'

const bearer = { authorization: 'Bearer key-1' }

suite('access to the toolbox through the gate', () => {
  test('a call with a valid API key is forwarded to its sandbox’s toolbox, with the sandbox’s id in the path', async () => {
    await using sides = await startSides()
    const reply = await fetch(`${sides.url}/toolbox/my-box/process/execute?a=1`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json' },
      body: '{"command":"ls"}',
    })
    assert.deepEqual([reply.status, await reply.text()], [200, 'hello'])
    const [call] = sides.seen
    assert.deepEqual(
      [call?.method, call?.url, call?.body, call?.headers['content-type']],
      ['POST', '/toolbox/box-id/process/execute?a=1', '{"command":"ls"}', 'application/json'],
    )
    assert.deepEqual(sides.asked, [
      { sandboxIdOrName: 'my-box', credentials: [{ kind: 'bearer', token: 'key-1' }], countsAsActivity: true },
    ])
    assert.deepEqual(sides.askedWith, ['POST /api/proxy/access Bearer the-proxy-key'])
  })

  test('the gate sends 100 Continue only after control has allowed the call; then the body arrives', async () => {
    await using sides = await startSides()
    const upload = async (headers: Record<string, string>) => {
      const call = httpRequest(`${sides.url}/toolbox/box/files/upload`, {
        method: 'POST',
        headers: { ...headers, expect: '100-continue', 'content-length': '4' },
      })
      let isContinued = false
      call.on('continue', () => {
        isContinued = true
        call.end('body')
      })
      call.flushHeaders()
      const [reply] = (await once(call, 'response')) as [IncomingMessage]
      reply.resume()
      call.destroy()
      return [reply.statusCode, isContinued]
    }
    assert.deepEqual(await upload({}), [401, false])
    assert.deepEqual(await upload(bearer), [200, true])
    assert.deepEqual(
      sides.seen.map(({ body }) => body),
      ['body'],
    )
  })

  test('the gate tries a bearer token first, then a preview token, then the token in the query', async () => {
    await using sides = await startSides()
    const query = '?DAYTONA_SANDBOX_AUTH_KEY=q'
    const preview = { 'X-Daytona-Preview-Token': 'p' }
    await fetch(`${sides.url}/toolbox/box/a${query}`, { headers: { ...bearer, ...preview } })
    await fetch(`${sides.url}/toolbox/box/b${query}`, { headers: preview })
    await fetch(`${sides.url}/toolbox/box/c${query}`)
    assert.deepEqual(
      sides.asked.map(({ credentials }) => credentials.map((credential) => 'token' in credential && credential.token)),
      [['key-1', 'p', 'q'], ['p', 'q'], ['q']],
    )
  })

  test('the gate sends a bearer token to control together with the value of the call’s organization header', async () => {
    await using sides = await startSides()
    await fetch(`${sides.url}/toolbox/box/a`, { headers: { ...bearer, 'X-Daytona-Organization-ID': 'org-9' } })
    assert.deepEqual(sides.asked[0]?.credentials, [{ kind: 'bearer', token: 'key-1', organizationId: 'org-9' }])
  })

  test('a call without a credential gets 401 in the toolbox’s error format, without a request to control', async () => {
    await using sides = await startSides()
    const reply = await fetch(`${sides.url}/toolbox/box/process/execute?secret=1`, { method: 'POST', body: '{}' })
    const { timestamp, ...body } = (await reply.json()) as Record<string, unknown>
    assert.equal(reply.status, 401)
    assert.ok(!Number.isNaN(Date.parse(String(timestamp))))
    assert.deepEqual(
      [body['statusCode'], body['code'], body['source'], body['path'], body['method']],
      [401, 'UNAUTHORIZED', 'DAYTONA_DAEMON', '/process/execute', 'POST'],
    )
    assert.deepEqual([sides.asked.length, sides.seen.length], [0, 0])
  })

  test('if control refuses a call, the gate passes on status and message, and the call reaches no sandbox', async () => {
    await using sides = await startSides()
    for (const [status, code, message] of [
      [401, 'UNAUTHORIZED', 'unauthorized: Invalid credentials'],
      [403, 'FORBIDDEN', 'because of 403'],
      [404, 'NOT_FOUND', 'Sandbox with ID or name box not found.'],
      [502, 'BAD_GATEWAY', 'because of 502'],
    ] as const) {
      sides.control.answer = () => ({ status, body: { message } })
      const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
      const body = (await reply.json()) as { code: string; message: string }
      assert.deepEqual([reply.status, body.code, body.message], [status, code, message])
    }
    assert.equal(sides.seen.length, 0)
  })

  test('a call to a sandbox that is not started gets 409 with the sandbox’s state', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    assert.equal(reply.status, 409)
    assert.match(((await reply.json()) as { message: string }).message, /stopped/)
    sides.control.answer = () => sides.access()
    assert.equal((await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })).status, 200)
  })

  test('GET /system/metrics works for a paused sandbox, and is no activity; other toolbox calls get 409', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ isStarted: false, state: 'paused' })
    const call = async (path: string, method = 'GET') =>
      (await fetch(`${sides.url}/toolbox/box${path}`, { method, headers: bearer })).status
    assert.equal(await call('/system/metrics?x=1'), 200)
    assert.deepEqual(
      [await call('/system/metrics', 'POST'), await call('/system/metrics/x'), await call('/files')],
      [409, 409, 409],
    )
    assert.deepEqual(
      sides.seen.map(({ url }) => url),
      ['/toolbox/box-id/system/metrics?x=1'],
    )
    assert.deepEqual(
      sides.asked.map(({ countsAsActivity }) => countsAsActivity),
      [false, true, true, true],
    )
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    assert.equal(await call('/system/metrics'), 409)
  })

  test('calls above an organization’s limit of open calls get 429; WebSockets and previews count as calls', async () => {
    await using sides = await startSides({ openOfOne: 3 })
    sides.control.answer = ({ sandboxIdOrName }) =>
      sides.access({ organizationId: sandboxIdOrName.slice(0, 1), sandboxId: sandboxIdOrName })
    const hanging: ServerResponse[] = []
    const hangs = Promise.withResolvers<void>()
    const hang = (_request: IncomingMessage, response: ServerResponse) => {
      if (hanging.push(response) === 2) hangs.resolve()
    }
    Object.assign(sides.toolbox, { call: hang, upgrade: (_request: IncomingMessage, socket: Duplex) => hold(socket) })
    sides.inside.call = hang
    const hold = (socket: Duplex) => {
      socket.on('error', () => undefined)
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    }
    const first = fetch(`${sides.url}/toolbox/a-1/x`, { headers: bearer })
    const second = fetch(`${sides.url}/preview/a-2/80/`, { headers: bearer })
    const headers = { ...bearer, connection: 'upgrade', upgrade: 'websocket' }
    const third = httpRequest({ port: sides.port, path: '/toolbox/a-3/x', headers }).end()
    const [[, socket]] = await Promise.all([once(third, 'upgrade'), hangs.promise])
    const status = async (path: string) => (await fetch(`${sides.url}${path}`, { headers: bearer })).status
    assert.equal(await status('/toolbox/a-4/x'), 429)
    assert.equal(await status('/preview/a-4/80/'), 429)
    Object.assign(sides.toolbox, { call: (_request: IncomingMessage, response: ServerResponse) => response.end() })
    assert.equal(await status('/toolbox/b-1/x'), 200)
    socket.destroy()
    for (const response of hanging) response.end()
    assert.deepEqual([(await first).status, (await second).status], [200, 200])
    for (let seen = 429; seen !== 200; ) seen = await status('/toolbox/a-4/x')
  })

  test('a call to the gate gets 503 if control’s answer about the call’s permission is malformed', async () => {
    await using sides = await startSides()
    sides.control.answer = () => ({ status: 200, body: { sandboxId: 7 } })
    assert.equal((await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })).status, 503)
    sides.control.answer = () => ({ status: 500, body: {} })
    assert.equal((await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })).status, 503)
  })

  test('GET /openapi.json describes every endpoint of the toolbox to every caller, and control is not asked', async () => {
    await using sides = await startSides()
    const reply = await fetch(`${sides.url}/openapi.json`, { headers: { origin: 'http://dashboard.test' } })
    assert.equal(reply.status, 200)
    assert.equal(reply.headers.get('access-control-allow-origin'), 'http://dashboard.test')
    const { paths } = (await reply.json()) as { paths: Record<string, object> }
    assert.equal(Object.values(paths).flatMap(Object.keys).length, toolboxEndpoints.length)
    assert.deepEqual(sides.asked, [])
  })

  test('a path that names no sandbox, or that contains `..`, gets 404', async () => {
    await using sides = await startSides()
    const ask = (path: string) =>
      new Promise<number>((resolve, reject) => {
        httpRequest({ port: sides.port, path, headers: bearer }, (reply) => resolve(reply.resume().statusCode ?? 0))
          .once('error', reject)
          .end()
      })
    for (const path of ['/', '/api/x', '/toolbox/', '/toolbox//x', '/toolbox/%ff/x', '/toolbox/a%2fb/x']) {
      assert.equal(await ask(path), 404, path)
    }
    for (const path of ['/toolbox/box/../other/x', '/toolbox/box/%2e%2e/other', '/toolbox/box/..']) {
      assert.equal(await ask(path), 404, path)
    }
    assert.equal(await ask(`/toolbox/box/${'x'.repeat(20_000)}`), 400)
    assert.equal(await ask(`/toolbox/box/${'x'.repeat(40_000)}`), 431)
    assert.equal(sides.seen.length, 0)
  })
})

suite('how often the gate asks control', () => {
  test('20 simultaneous calls with one key cause one request to control; a second key causes another request', async () => {
    await using sides = await startSides()
    const call = (key: string) => fetch(`${sides.url}/toolbox/box/x`, { headers: { authorization: `Bearer ${key}` } })
    await Promise.all(Array.from({ length: 20 }, () => call('one')))
    await call('two')
    const tokens = sides.asked.flatMap(({ credentials }) =>
      credentials.map((given) => ('token' in given ? given.token : '')),
    )
    assert.deepEqual(tokens.toSorted(), ['one', 'two'])
    assert.equal(sides.seen.length, 21)
  })

  test('the gate does not cache a refusal by control, but asks control again at the next call', async () => {
    await using sides = await startSides()
    sides.control.answer = () => ({ status: 404, body: {} })
    await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    assert.equal(sides.asked.length, 2)
  })

  test('a call with X-Daytona-Skip-Last-Activity-Update: true does not count as activity', async () => {
    await using sides = await startSides()
    await fetch(`${sides.url}/toolbox/box/x`, { headers: { ...bearer, 'X-Daytona-Skip-Last-Activity-Update': 'true' } })
    assert.equal(sides.asked[0]?.countsAsActivity, false)
  })

  test('an open call counts as activity of its sandbox at regular intervals', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    const asked = Promise.withResolvers<void>()
    sides.control.answer = () => {
      if (sides.asked.length >= 4) asked.resolve()
      return sides.access()
    }
    sides.toolbox.call = async (_request, response) => {
      await asked.promise
      response.end('done')
    }
    assert.equal(await (await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })).text(), 'done')
    assert.ok(sides.asked.every(({ countsAsActivity }) => countsAsActivity))
  })

  test('a WebSocket counts as activity of its sandbox only until it closes', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    sides.control.answer = ({ sandboxIdOrName }) => sides.access({ sandboxId: sandboxIdOrName })
    const questionsAbout = (sandbox: string) => sides.asked.filter((asked) => asked.sandboxIdOrName === sandbox).length
    const untilAsked = async (sandbox: string, more: number) => {
      for (const most = questionsAbout(sandbox) + more; questionsAbout(sandbox) < most; ) await pause(5)
    }
    sides.toolbox.upgrade = (_request, socket) => {
      socket
        .on('error', () => undefined)
        .on('end', () => socket.end())
        .resume()
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    }
    const open = async (sandbox: string) => {
      const headers = { ...bearer, connection: 'upgrade', upgrade: 'websocket' }
      const [, socket] = await once(
        httpRequest({ port: sides.port, path: `/toolbox/${sandbox}/x`, headers }).end(),
        'upgrade',
      )
      return socket as Duplex
    }
    const closing = await open('closed')
    const staying = await open('open')
    await untilAsked('closed', 2)
    closing.destroy()
    // The gate may ask once more before it notices the close.
    await untilAsked('open', 3)
    const questions = questionsAbout('closed')
    await untilAsked('open', 5)
    assert.equal(questionsAbout('closed'), questions)
    staying.destroy()
  })

  test('an open call continues while control does not answer whether the call is still allowed', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    const askedAgain = Promise.withResolvers<void>()
    sides.toolbox.call = async (_request, response) => {
      response.write('a part')
      let failed = 0
      sides.control.answer = () => {
        if (++failed === 3) askedAgain.resolve()
        return { status: 503, body: {} }
      }
      await askedAgain.promise
      response.end(' and the rest')
    }
    const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    assert.equal(await reply.text(), 'a part and the rest')
  })

  test('the gate ends an open call when the API key of the call is revoked', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    sides.toolbox.call = (_request, response) => {
      response.write('a part')
      sides.control.answer = () => ({ status: 401, body: {} })
    }
    const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    await assert.rejects(reply.text())
  })
})

suite('how the toolbox receives a call from the gate', () => {
  test('the gate removes a caller’s credentials and identity from a call, but not the SDK’s name and version', async () => {
    await using sides = await startSides()
    await new Promise((resolve, reject) => {
      httpRequest(
        {
          port: sides.port,
          path: '/toolbox/box/x?a=1&DAYTONA_SANDBOX_AUTH_KEY=s3cret&b=%20',
          headers: {
            ...bearer,
            'X-Daytona-Preview-Token': 'p',
            'X-Daytona-Organization-ID': 'o',
            'X-Daytona-Source': 'sdk',
            Cookie: 'a=b',
            'X-Theirs': 'kept',
            traceparent: '00-1',
          },
        },
        (reply) => reply.resume().once('end', resolve),
      )
        .once('error', reject)
        .end()
    })
    const { headers, url } = sides.seen[0]!
    assert.equal(url, '/toolbox/box-id/x?a=1&b=%20')
    assert.deepEqual(Object.keys(headers).toSorted(), [
      'connection',
      'host',
      'traceparent',
      'x-daytona-source',
      'x-theirs',
    ])
    assert.doesNotMatch(JSON.stringify(sides.seen), /s3cret|key-1/)
  })

  test('the body of a call arrives completely at the toolbox, even if no length was sent', async () => {
    await using sides = await startSides()
    const body = new Blob(['part one, ', 'part two']).stream()
    await fetch(`${sides.url}/toolbox/box/x`, { method: 'POST', headers: bearer, body, duplex: 'half' } as RequestInit)
    assert.equal(sides.seen[0]?.body, 'part one, part two')
  })

  test('the caller gets the toolbox’s status, headers and pieces as they were sent, the head before the body', async () => {
    await using sides = await startSides()
    const goOn = Promise.withResolvers<void>()
    sides.toolbox.call = async (_request, response) => {
      response.writeHead(207, ['X-Twice', 'a', 'X-Twice', 'b'])
      response.flushHeaders()
      await goOn.promise
      response.end('late')
    }
    const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
    assert.deepEqual([reply.status, reply.headers.get('x-twice')], [207, 'a, b'])
    goOn.resolve()
    assert.equal(await reply.text(), 'late')
  })

  test('large bodies arrive completely in both directions, chunked or with a length, in consecutive calls', async () => {
    await using sides = await startSides()
    // The body needs many reads. Its 32-bit numbers all differ, so bytes that were lost or swapped would be noticed.
    const large = Buffer.from(Uint32Array.from({ length: 1_000_003 }, (_, index) => index).buffer)
    let received = Buffer.alloc(0)
    sides.toolbox.call = async (request, response) => {
      received = Buffer.concat(await request.toArray())
      if (request.url?.endsWith('/known')) response.setHeader('content-length', large.length)
      for (let at = 0; at < large.length; at += 300_000) response.write(large.subarray(at, at + 300_000))
      response.end()
    }
    for (const path of ['known', 'pieces', 'known']) {
      const body = path === 'known' ? large : new Blob([large]).stream()
      const call = { method: 'POST', headers: bearer, body, duplex: 'half' } as RequestInit
      const reply = await fetch(`${sides.url}/toolbox/box/${path}`, call)
      assert.ok(Buffer.from(await reply.arrayBuffer()).equals(large), `the answer, ${path}`)
      assert.ok(received.equals(large), `the body, ${path}`)
    }
  })

  test('after a long answer with a length, the caller’s connection can be used for the caller’s next call', async () => {
    await using sides = await startSides()
    const large = Buffer.from(Uint32Array.from({ length: 1_000_003 }, (_, index) => index).buffer)
    sides.toolbox.call = async (request, response) => {
      const body = request.url?.endsWith('/long') ? large : Buffer.from('short')
      response.setHeader('content-length', body.length)
      for (let at = 0; at < body.length; at += 300_000) {
        response.write(body.subarray(at, at + 300_000))
        await new Promise(setImmediate)
      }
      response.end()
    }
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const sockets = new Set()
    for (const path of ['long', 'short', 'long', 'long']) {
      const call = httpRequest({ port: sides.port, path: `/toolbox/box/${path}`, headers: bearer, agent }).end()
      const [reply] = (await once(call, 'response')) as [IncomingMessage]
      sockets.add(reply.socket)
      const body = Buffer.concat(await reply.toArray())
      assert.ok(body.equals(path === 'long' ? large : Buffer.from('short')), path)
    }
    agent.destroy()
    assert.equal(sockets.size, 1)
  })

  for (const isKnown of [false, true]) {
    test(`for a slow reader, the gate does not buffer an answer ${isKnown ? 'with' : 'without'} a length`, async () => {
      await using sides = await startSides()
      const total = 256 * 1024 * 1024
      let written = 0
      const stuck = Promise.withResolvers<void>()
      sides.toolbox.call = (_request, response) => {
        const piece = Buffer.alloc(1024 * 1024)
        if (isKnown) response.setHeader('content-length', total)
        const more = () => {
          while (written < total) {
            written += piece.length
            if (!response.write(piece)) {
              stuck.resolve()
              return
            }
          }
          response.end()
        }
        response.on('drain', more)
        more()
      }
      const socket = connect(sides.port, '127.0.0.1')
      socket.write('GET /toolbox/box/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-1\r\n\r\n')
      await once(socket, 'readable')
      await stuck.promise
      const before = written
      // While one caller does not read its answer, the gate must still answer other calls.
      for (let i = 0; i < 20; i++) {
        const other = await fetch(`${sides.url}/toolbox/box/y`, { method: 'OPTIONS' })
        await other.arrayBuffer()
      }
      socket.destroy()
      assert.ok(before < total / 2, `${before} bytes were taken in`)
    })
  }

  test('the gate disconnects a caller that reads nothing for a while, but not a caller that reads slowly', async () => {
    // The gate's idle timeout. A slow caller must be able to read some bytes in this time, even on a busy machine.
    const idleMs = 1500
    await using sides = await startSides({ idleMs })
    const left = Promise.withResolvers<void>()
    const sizes = { stuck: 64 * 1024 * 1024, late: 8 * 1024 * 1024 }
    sides.toolbox.call = async ({ url }, response) => {
      const isLate = url?.endsWith('/late')
      response.once('close', () => !isLate && left.resolve())
      await pause(isLate ? idleMs * 1.5 : 0)
      response.end(Buffer.alloc(isLate ? sizes.late : sizes.stuck))
    }
    // The test reads this answer as soon as it arrives. If the test read it only after `/stuck` has ended, the gate could
    // disconnect this call, too.
    const late = fetch(`${sides.url}/toolbox/box/late`, { headers: bearer }).then((reply) => reply.arrayBuffer())
    const socket = connect(sides.port, '127.0.0.1').pause()
    socket.on('error', () => {})
    socket.write('GET /toolbox/box/stuck HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-1\r\n\r\n')
    await left.promise
    socket.destroy()
    assert.equal((await late).byteLength, sizes.late)
  })
})

suite('callers and servers that close early', () => {
  test('the toolbox notices that a caller has closed its connection', async () => {
    await using sides = await startSides()
    const reached = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    sides.toolbox.call = (_request, response) => {
      response.once('close', closed.resolve)
      reached.resolve()
    }
    const caller = new AbortController()
    const reply = fetch(`${sides.url}/toolbox/box/x`, { headers: bearer, signal: caller.signal })
    await reached.promise
    caller.abort()
    await assert.rejects(reply)
    await closed.promise
  })

  test('if the toolbox breaks off an answer, short or long, the caller’s answer breaks off too', async () => {
    await using sides = await startSides()
    for (const length of [100, 10_000_000]) {
      sides.toolbox.call = (_request, response) => {
        response.writeHead(200, { 'content-length': length })
        response.write(Buffer.alloc(length / 2), () => response.destroy())
      }
      const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer })
      await assert.rejects(reply.text())
    }
  })

  test('if a caller closes its connection during a long reply, the toolbox’s response is closed too', async () => {
    await using sides = await startSides()
    const closed = Promise.withResolvers<void>()
    sides.toolbox.call = (_request, response) => {
      response.writeHead(200, { 'content-length': 10_000_000 })
      response.write(Buffer.alloc(1_000_000))
      response.once('close', closed.resolve)
    }
    const caller = new AbortController()
    const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers: bearer, signal: caller.signal })
    caller.abort()
    await assert.rejects(reply.text())
    await closed.promise
  })
})
