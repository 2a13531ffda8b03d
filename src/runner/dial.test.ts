import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { Inflow } from '#src/kit/inflow.ts'
import { silentLog } from '#src/kit/log.ts'
import { NativeAgent } from '#src/toolbox/agent/testing/native-agent.ts'
import { dialRefusals } from '#src/wire/dial.ts'
import { createToolboxServer } from './api.ts'
import type { HeldSandbox } from './host.ts'

/** A runner in front of a real agent, and a server that listens on 127.0.0.1 beside that. */
const startSides = async (onConnection: (socket: Socket) => void = () => undefined) => {
  const native = await NativeAgent.start('release')
  const held = { id: 'box', status: 'started', socketPath: native.socketPath } as HeldSandbox
  const server = await createToolboxServer({
    host: { get: (id) => (id === 'box' ? held : undefined) },
    log: silentLog(),
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  const sockets = new Set<Socket>()
  const inside = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    onConnection(socket)
  })
  inside.listen(0, '127.0.0.1')
  await once(inside, 'listening')
  const { port } = server.server.address() as AddressInfo
  const { port: insidePort } = inside.address() as AddressInfo
  return {
    native,
    held,
    server,
    insidePort,
    dial: async (path: string): Promise<{ status: number; socket: Duplex }> => {
      // As the proxy does it: what came right behind the answer is put back before anything else can be read.
      return new Promise((resolve, reject) => {
        const createConnection = () => Inflow.to({ port, host: '127.0.0.1' }).hearOut()
        const asking = request({ port, method: 'CONNECT', path, createConnection })
        asking.once('error', reject)
        asking.once('connect', ({ statusCode = 0 }, socket, head) => {
          socket.on('error', () => undefined)
          if (head.length > 0) socket.unshift(head)
          resolve({ status: statusCode, socket })
        })
        asking.end()
      })
    },
    async [Symbol.asyncDispose]() {
      server.server.closeAllConnections()
      await server.close()
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => inside.close(resolve))
      await native[Symbol.asyncDispose]()
    },
  }
}

const statusOf = async (sides: Awaited<ReturnType<typeof startSides>>, path: string) => {
  const { status, socket } = await sides.dial(path)
  socket.destroy()
  return status
}

suite('CONNECT {sandboxId}:{port}', () => {
  test('200 is followed by raw bytes both ways, and by the end of either side', async () => {
    await using sides = await startSides((socket) => void socket.pipe(socket))
    const { status, socket } = await sides.dial(`box:${sides.insidePort}`)
    assert.equal(status, 200)
    const sent = Buffer.alloc(4 * 1024 * 1024, 'abc')
    socket.end(sent)
    const came: Buffer[] = []
    for await (const piece of socket) came.push(piece)
    assert.ok(Buffer.concat(came).equals(sent))
  })

  test('what a server says before it hangs up arrives whole', async () => {
    const said = Buffer.alloc(1024 * 1024, 'x')
    await using sides = await startSides((socket) => void socket.end(said))
    const { socket } = await sides.dial(`box:${sides.insidePort}`)
    let bytes = 0
    for await (const piece of socket) bytes += piece.length
    assert.equal(bytes, said.length)
  })

  test('what a server says before it closes in the middle of what it is sent arrives', async () => {
    await using sides = await startSides((socket) =>
      socket.once('data', () => socket.pause().write('too much', () => socket.destroy())),
    )
    let heard = 0
    for (let i = 0; i < 50; i++) {
      const { socket } = await sides.dial(`box:${sides.insidePort}`)
      let said = ''
      socket.on('data', (bytes) => {
        said += bytes
      })
      // Cut off or ended: what counts is what came before.
      const closed = new Promise((resolve) => socket.once('close', resolve).once('end', () => socket.destroy()))
      const sending = setInterval(() => socket.write(Buffer.alloc(300_000)), 1)
      await closed
      clearInterval(sending)
      if (said === 'too much') heard++
    }
    assert.equal(heard, 50)
  })

  test('a caller that breaks off is told to the server', async () => {
    const reached = Promise.withResolvers<Socket>()
    await using sides = await startSides((socket) => reached.resolve(socket))
    const { socket } = await sides.dial(`box:${sides.insidePort}`)
    const other = await reached.promise
    const ended = once(other, 'end')
    other.resume()
    socket.destroy()
    await ended
  })

  test('502 where nothing listens, 404 for no sandbox or no port, 409 for one that is not started', async () => {
    await using sides = await startSides()
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    assert.equal(await statusOf(sides, `box:${port}`), dialRefusals.nothingListens)
    for (const path of [`other:${sides.insidePort}`, 'box:0', 'box:65536', 'box:80x', 'box', '/toolbox/box', ':80']) {
      assert.equal(await statusOf(sides, path), dialRefusals.noSandbox, path)
    }
    sides.held.status = 'stopped'
    assert.equal(await statusOf(sides, `box:${sides.insidePort}`), dialRefusals.notStarted)
    sides.held.status = 'started'
    await sides.native.agent.shutdown(100)
    assert.equal(await statusOf(sides, `box:${sides.insidePort}`), dialRefusals.notStarted)
  })

  test('503 for more connections than one sandbox may have; others make room when they end', async () => {
    await using sides = await startSides()
    const open = await Promise.all(Array.from({ length: 512 }, () => sides.dial(`box:${sides.insidePort}`)))
    assert.ok(open.every(({ status }) => status === 200))
    assert.equal(await statusOf(sides, `box:${sides.insidePort}`), dialRefusals.busy)
    // The toolbox of the same sandbox is not kept from its work.
    await sides.native.agent.info()
    for (const { socket } of open) socket.destroy()
  })

  test('closing the server ends every connection that it has given away', async () => {
    await using sides = await startSides()
    const { socket } = await sides.dial(`box:${sides.insidePort}`)
    const closed = once(socket.resume(), 'close')
    await sides.server.close()
    await closed
  })
})
