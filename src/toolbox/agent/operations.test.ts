import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { userInfo } from 'node:os'
import type { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { AgentGone, AgentRefused, agentAt } from './agent.ts'
import { NativeAgent } from './testing/native-agent.ts'

const listen = async (
  onConnection: (socket: Socket) => void,
  host = '127.0.0.1',
): Promise<Server & AsyncDisposable> => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    onConnection(socket)
  })
  server.listen(0, host)
  await once(server, 'listening')
  return server
}
const portOf = (server: Server): number => (server.address() as { port: number }).port

const readAll = async (stream: Duplex): Promise<Buffer> => Buffer.concat(await stream.toArray())

suite('`dial` to a server in a sandbox', () => {
  test('`dial` to an echo server returns all bytes, and closing one direction leaves the other open', async () => {
    await using native = await NativeAgent.start()
    await using server = await listen((socket) => socket.pipe(socket))
    const before = native.openDescriptors
    const stream = await native.agent.dial(portOf(server))
    const sent = Buffer.alloc(5 * 1024 * 1024, 'tunnel ')
    stream.end(sent)
    assert.ok((await readAll(stream)).equals(sent))
    await native.downTo(before)
  })

  test('a server reached by `dial` still receives input after it has ended its output', async () => {
    await using native = await NativeAgent.start()
    const heard = Promise.withResolvers<string>()
    await using server = await listen((socket) => {
      socket.end('bye')
      socket.setEncoding('utf8').once('data', heard.resolve)
    })
    const stream = await native.agent.dial(portOf(server))
    const received: string[] = []
    stream.setEncoding('utf8').on('data', (text: string) => received.push(text))
    await once(stream, 'end')
    assert.deepEqual(received, ['bye'])
    stream.end('late')
    assert.equal(await heard.promise, 'late')
  })

  test('`dial` reaches a server that listens only on ::1', async (t) => {
    await using native = await NativeAgent.start()
    const server = await listen((socket) => socket.end('six'), '::1').catch(() => undefined)
    if (!server) return t.skip('no IPv6 here')
    await using _ = server
    const stream = await native.agent.dial(portOf(server))
    assert.equal((await readAll(stream)).toString(), 'six')
    stream.end()
  })

  test('`dial` to a closed port fails with ECONNREFUSED', async () => {
    await using native = await NativeAgent.start()
    const server = await listen(() => {})
    const port = portOf(server)
    await server[Symbol.asyncDispose]()
    await assert.rejects(native.agent.dial(port), { name: 'AgentRefused', stage: 'connect', errno: 'ECONNREFUSED' })
  })

  test('if the gate closes a stream of `dial`, the agent closes the connection inside the sandbox', async () => {
    await using native = await NativeAgent.start()
    const closed = Promise.withResolvers<void>()
    await using server = await listen((socket) => {
      socket.resume().on('end', () => socket.end())
      socket.on('close', () => closed.resolve())
    })
    const before = native.openDescriptors
    const stream = await native.agent.dial(portOf(server))
    stream.write('hello')
    stream.destroy()
    await closed.promise
    await native.downTo(before)
  })

  test('a client that closes its stream of `dial` while the server sends fast leaves no connection open', async () => {
    await using native = await NativeAgent.start()
    const closed = Promise.withResolvers<void>()
    await using server = await listen((socket) => {
      socket.on('close', () => closed.resolve())
      const flood = (): void => void (socket.writable && socket.write(Buffer.alloc(65536), flood))
      flood()
    })
    const before = native.openDescriptors
    const stream = await native.agent.dial(portOf(server))
    await once(stream, 'readable')
    stream.destroy()
    await closed.promise
    await native.downTo(before)
  })
})

suite('`info` and `shutdown` of the agent', () => {
  test('`info` returns the agent’s version, and an id that is new at each start of the agent', async () => {
    await using first = await NativeAgent.start()
    await using second = await NativeAgent.start()
    const { version, bootId } = await first.agent.info()
    assert.equal(version, '1')
    assert.match(bootId, /^[0-9a-f]{32}$/)
    assert.equal((await first.agent.info()).bootId, bootId)
    assert.notEqual((await second.agent.info()).bootId, bootId)
  })

  test('`shutdown` of an agent sends SIGTERM to all processes, and kills processes that do not end', async () => {
    await using native = await NativeAgent.start()
    const spec = { env: {}, user: userInfo().username, mergeOutput: false }
    const polite = await native.agent.exec({ ...spec, argv: ['sleep', '1000'] })
    const deaf = await native.agent.exec({
      ...spec,
      argv: ['/bin/sh', '-c', 'trap "" TERM; echo ready; while :; do sleep 0.1; done'],
    })
    const outputs = deaf[Symbol.asyncIterator]()
    assert.equal((await outputs.next()).value?.data.toString(), 'ready\n')
    await native.agent.shutdown(200)
    assert.equal((await polite.exit).signal, 15)
    // The EXIT frame of this command may arrive before the agent ends, or not at all.
    const [end] = await Promise.allSettled([deaf.exit])
    if (end.status === 'fulfilled') assert.equal(end.value.signal, 9)
    else assert.ok(end.reason instanceof AgentGone)
  })

  test('`shutdown` of an agent sends SIGHUP to an interactive shell, because the shell ignores SIGTERM', {
    timeout: 120_000,
  }, async () => {
    await using native = await NativeAgent.start()
    const terminal = { cols: 80, rows: 24 }
    const argv = ['bash', '--norc', '-i']
    const spec = { id: 'shell', argv, env: { PS1: 'ready> ' }, user: userInfo().username, terminal, ringBytes: 65_536 }
    await native.agent.jobs.spawn(spec)
    // Wait for the prompt: a shell that is still starting does not ignore SIGTERM and has no terminal.
    let shown = ''
    for await (const event of native.agent.jobs.attach('shell', 0)) {
      if ('data' in event) shown += event.data.toString()
      if (shown.includes('ready> ')) break
    }
    // The grace period is longer than the test's time limit. So the test passes only if SIGHUP ends the shell.
    await native.agent.shutdown(600_000)
  })

  test('a call to an agent that has ended throws AgentGone; an agent that is shutting down refuses calls', async () => {
    await assert.rejects(agentAt('/tmp/no-such-agent.sock').info(), AgentGone)
    await using native = await NativeAgent.start()
    const deaf = await native.agent.exec({
      argv: ['/bin/sh', '-c', 'trap "" TERM; echo ready; sleep 1000 & wait; wait'],
      env: {},
      user: userInfo().username,
      mergeOutput: false,
    })
    const outputs = deaf[Symbol.asyncIterator]()
    await outputs.next()
    const gone = native.agent.shutdown(2000)
    // `shutdown` has its own connection, so some calls of `dial` may reach the agent earlier. Such calls fail with stage `connect`,
    // because nothing listens on port 9.
    let refused: unknown
    do refused = await native.agent.dial(9).catch((error: unknown) => error)
    while (refused instanceof AgentRefused && refused.stage === 'connect')
    assert.ok(refused instanceof AgentGone || (refused instanceof AgentRefused && refused.stage === 'ending'))
    deaf.kill(9)
    await gone
  })
})
