import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Duplex, PassThrough } from 'node:stream'
import { suite, test } from 'node:test'
import { Inflow } from '#src/kit/inflow.ts'
import { NativeAgent } from '#src/toolbox/agent/testing/native-agent.ts'
import { assignmentWith } from '#src/toolbox/testing/assignment.ts'
import type { SandboxHere } from '#src/wire/gate-link.ts'
import { createDoor } from './door.ts'
import { Inside } from './inside.ts'
import type { RunnerLink } from './runner-link.ts'
import type { AdmittedSandbox } from './sandboxes.ts'
import { newSigner, ticketsOf } from './testing/signer.ts'

/** Starts a real agent, and beside it a server that listens on 127.0.0.1. */
const startSides = async (onConnection: (socket: Socket) => void = () => undefined) => {
  const native = await NativeAgent.start('release')
  const held: SandboxHere = {
    id: 'box',
    assignment: assignmentWith({}),
    status: 'started',
    socketPath: native.socketPath,
  }
  const find = async ({ sandboxId }: AdmittedSandbox) => ({
    sandbox: sandboxId === 'box' ? held : undefined,
    link: {} as RunnerLink,
  })
  const inner = new Inside(createDoor({ find }, ticketsOf(signer)))
  const entering = (sandboxId: string, port: number) => ({
    ...wanted,
    sandboxId,
    ticket: signer.sign({ sandboxId, organizationId: 'org-1', allowed: { kind: 'port', port } }),
  })
  const sockets = new Set<Socket>()
  const inside = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  inside.listen(0, '127.0.0.1')
  await once(inside, 'listening')
  const { port: insidePort } = inside.address() as AddressInfo
  return {
    native,
    held,
    insidePort,
    request: (headers: string[], method = 'GET') =>
      inner.request(entering('box', insidePort), insidePort, { method, path: '/', headers }),
    dial: async (port = insidePort, sandboxId = 'box'): Promise<Duplex> =>
      (await inner.dial(entering(sandboxId, port), port)).on('error', () => undefined),
    /** Connects to the port of the server in the sandbox, with this ticket. */
    dialWith: (ticket: string) => inner.dial({ ...wanted, ticket }, insidePort),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => inside.close(resolve))
      await native[Symbol.asyncDispose]()
    },
  }
}

const wanted = { sandboxId: 'box', runnerAddress: 'unix:/nowhere', isStarted: true }
const signer = newSigner()

suite('a connection to a port inside a sandbox', () => {
  test('a connection to a port in a sandbox needs a ticket for that port of that sandbox', async () => {
    let count = 0
    await using sides = await startSides(() => {
      count += 1
    })
    const box = { sandboxId: 'box', organizationId: 'org-1' } as const
    const here = { kind: 'port', port: sides.insidePort } as const
    for (const [ticket, status] of [
      [signer.sign({ ...box, allowed: { kind: 'port', port: sides.insidePort - 1 } }), 403],
      [signer.sign({ ...box, allowed: { kind: 'toolbox' } }), 403],
      [signer.sign({ ...box, allowed: here, sandboxId: 'other' }), 401],
      [signer.sign({ ...box, allowed: here, organizationId: 'org-2' }), 401],
      ['', 401],
    ] as const) {
      await assert.rejects(sides.dialWith(ticket), { status })
    }
    assert.equal(count, 0)
    const socket = await sides.dialWith(signer.sign({ ...box, allowed: here }))
    socket.destroy()
  })

  test('a connection into a sandbox carries bytes in both directions, and the end of each direction', async () => {
    await using sides = await startSides((socket) => void socket.pipe(socket))
    const socket = await sides.dial()
    const sent = Buffer.alloc(4 * 1024 * 1024, 'abc')
    socket.end(sent)
    const came: Buffer[] = []
    for await (const piece of socket) came.push(piece)
    assert.ok(Buffer.concat(came).equals(sent))
  })

  test('a caller gets all bytes that a server in a sandbox has sent before it closed the connection', async () => {
    const said = Buffer.alloc(1024 * 1024, 'x')
    await using sides = await startSides((socket) => void socket.end(said))
    const socket = await sides.dial()
    let bytes = 0
    for await (const piece of socket) bytes += piece.length
    assert.equal(bytes, said.length)
  })

  test('the caller gets all output of a sandbox’s server, even if the server disconnects with input unread', async () => {
    await using sides = await startSides((socket) =>
      socket.once('data', () => socket.pause().write('too much', () => socket.destroy())),
    )
    let heard = 0
    for (let i = 0; i < 50; i++) {
      const socket = await sides.dial()
      let said = ''
      socket.on('data', (bytes) => {
        said += bytes
      })
      // The connection may end with a reset or an end of file. In both cases, all bytes that the sandbox's server has sent must
      // have arrived.
      const closed = new Promise((resolve) => socket.once('close', resolve).once('end', () => socket.destroy()))
      const sending = setInterval(() => socket.write(Buffer.alloc(300_000)), 1)
      await closed
      clearInterval(sending)
      if (said === 'too much') heard++
    }
    assert.equal(heard, 50)
  })

  test('a server in a sandbox notices that its caller has disconnected', async () => {
    const reached = Promise.withResolvers<Socket>()
    await using sides = await startSides((socket) => reached.resolve(socket))
    const socket = await sides.dial()
    const other = await reached.promise
    const ended = once(other, 'end')
    other.resume()
    socket.destroy()
    await ended
  })

  test('a connection into a sandbox fails with 502 if nothing listens there, 409 if the sandbox is stopped', async () => {
    await using sides = await startSides()
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    await assert.rejects(sides.dial(port), { status: 502, port })
    await assert.rejects(sides.dial(sides.insidePort, 'other'), { status: 502 })
    sides.held.status = 'stopped'
    await assert.rejects(sides.dial(), { status: 409 })
    sides.held.status = 'started'
    await sides.native.agent.shutdown(100)
    await assert.rejects(sides.dial(), { status: 409 })
  })

  test('connections above a sandbox’s limit of 512 fail with 503, until earlier connections have ended', async () => {
    await using sides = await startSides()
    const open = await Promise.all(Array.from({ length: 512 }, () => sides.dial()))
    await assert.rejects(sides.dial(), { status: 503 })
    // The agent must still answer other requests, although the sandbox has reached its limit of connections.
    await sides.native.agent.info()
    const closed = open.map((socket) => once(socket, 'close'))
    for (const socket of open) socket.destroy()
    await Promise.all(closed)
    ;(await sides.dial()).destroy()
  })

  test('if a connection to a sandbox closes before its use, the call gets 409 and counts towards no limit', async () => {
    const held: SandboxHere = { id: 'box', assignment: assignmentWith({}), status: 'started', socketPath: '/agent' }
    const find = async () => ({ sandbox: held, link: {} as RunnerLink })
    const over = new PassThrough()
    over.destroy()
    await once(over, 'close')
    let dialled: Duplex = over
    const inner = new Inside(createDoor({ find }, ticketsOf(signer)), () => ({ dial: async () => dialled }))
    const allowed = { kind: 'port', port: 80 } as const
    const ticket = signer.sign({ sandboxId: 'box', organizationId: 'org-1', allowed })
    for (let n = 0; n < 600; n += 1)
      await assert.rejects(inner.dial({ ...wanted, ticket }, 80), { code: 'not_started' })
    dialled = new PassThrough()
    assert.equal(await inner.dial({ ...wanted, ticket }, 80), dialled)
  })

  test('the caller gets the answer of a sandbox’s server that disconnects before it has read the whole body', async () => {
    const closed = Promise.withResolvers<void>()
    await using sides = await startSides((socket) => {
      socket
        .once('close', () => closed.resolve())
        .once('data', () => {
          socket.write('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno')
          socket.destroy()
        })
    })
    const call = sides.request(['Host', 'x', 'Transfer-Encoding', 'chunked'], 'POST')
    const heard = once(call, 'response')
    call.write('some')
    // Send more of the body when the server has closed the connection and the test has not yet read the server's answer.
    closed.promise.then(() => call.write('more'))
    const [answer] = await heard
    const body = await answer.toArray()
    assert.deepEqual([answer.statusCode, String(Buffer.concat(body))], [413, 'no'])
  })

  test('answers from a sandbox are read with an Inflow socket, which reads into the same memory again', async () => {
    await using sides = await startSides((socket) => void socket.end('HTTP/1.1 204 No Content\r\n\r\n'))
    const call = sides.request(['Host', 'x']).end()
    const [answer] = await once(call, 'response')
    assert.deepEqual([answer.statusCode, answer.socket instanceof Inflow], [204, true])
    call.destroy()
  })
})
