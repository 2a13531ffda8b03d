import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { type LinkSocket, type LinkState, PtyLink } from './pty-link.ts'

beforeEach(() => mock.timers.enable({ apis: ['setTimeout', 'Date'] }))
afterEach(() => mock.timers.reset())

/** Simulates the server. The test sends output and closes connections through the simulated WebSockets in `sockets`. */
const startServer = ({ answer = '' }: { answer?: string } = {}) => {
  const sockets: (LinkSocket & { sent: unknown[]; isClosed: boolean })[] = []
  const states: LinkState[] = []
  const output: string[] = []
  const server = { answer, isDown: false }
  const link = new PtyLink({
    open: async () => {
      if (server.isDown) throw new Error('The server cannot be reached.')
      const sent: unknown[] = []
      const socket = {
        sent,
        isClosed: false,
        readyState: 1,
        bufferedAmount: 0,
        onmessage: null,
        onclose: null,
        send: (data: unknown) => void sent.push(data),
        close: () => {
          socket.isClosed = true
        },
      }
      sockets.push(socket as never)
      return socket as never
    },
    ask: async () => server.answer,
    onState: (state) => void states.push(state),
    onBegin: () => void output.push('<begin>'),
    onOutput: (data) => void output.push(Buffer.from(data).toString()),
  })
  const settle = async () => {
    for (let i = 0; i < 10; i++) await Promise.resolve()
  }
  const say = (data: unknown) => sockets.at(-1)!.onmessage!({ data } as MessageEvent)
  const control = (message: object) => say(JSON.stringify({ type: 'control', ...message }))
  const lose = async () => {
    sockets.at(-1)!.onclose!({} as CloseEvent)
    await settle()
  }
  const connect = async () => {
    link.connect()
    await settle()
    control({ status: 'connected' })
  }
  return { link, sockets, states, output, server, settle, say, control, lose, connect }
}

const bytes = (text: string) => new TextEncoder().encode(text).buffer

test('`PtyLink` sends typed text, and shows all output, even output that looks like a control message', async () => {
  const { link, sockets, output, say, connect } = startServer()
  await connect()
  say(bytes('{"type":"control","status":"exited","exitCode":0}'))
  assert.equal(link.send('ls\r'), true)
  assert.equal(link.state.name, 'connected')
  assert.deepEqual(sockets[0]!.sent, ['ls\r'])
  assert.deepEqual(output, ['<begin>', '{"type":"control","status":"exited","exitCode":0}'])
})

test('if a terminal’s connection is lost, `PtyLink` connects again, and waits longer after each failure', async () => {
  const { link, sockets, server, settle, lose, connect, control } = startServer()
  await connect()
  server.isDown = true
  server.answer = 'The server cannot be reached.'
  await lose()
  const waits: number[] = []
  for (let i = 0; i < 4; i++) {
    assert.equal(link.state.name, 'waiting')
    const wait = (link.state as { retryAt: number }).retryAt - Date.now()
    waits.push(wait)
    mock.timers.tick(wait)
    await settle()
  }
  assert.ok(waits.every((wait, i) => i === 0 || wait > waits[i - 1]!))
  server.isDown = false
  mock.timers.tick(15_000)
  await settle()
  control({ status: 'connected' })
  assert.equal(link.state.name, 'connected')
  assert.equal(sockets.length, 2)
})

test('when the PTY session has ended, `PtyLink` reports the exit code and does not connect again', async () => {
  const { link, sockets, control, lose, connect } = startServer()
  await connect()
  control({ status: 'exited', exitCode: 3 })
  await lose()
  mock.timers.tick(60_000)
  link.connect()
  assert.deepEqual(link.state, { name: 'ended', exitCode: 3, reason: undefined })
  assert.equal(sockets.length, 1)
  assert.equal(link.send('x'), false)
})

test('`PtyLink` does not connect again if its PTY session no longer exists', async () => {
  const { link, sockets, control, lose, connect } = startServer({ answer: 'gone' })
  await connect()
  control({ status: 'error', error: 'There is no PTY session.' })
  await lose()
  mock.timers.tick(60_000)
  assert.equal(link.state.name, 'gone')
  assert.equal(sockets.length, 1)
})

test('`PtyLink` does not try to connect while the sandbox does not run', async () => {
  const { link, sockets, settle, connect } = startServer()
  await connect()
  link.hold()
  mock.timers.tick(60_000)
  await settle()
  assert.equal(sockets[0]!.isClosed, true)
  assert.equal(link.state.name, 'held')
  assert.equal(sockets.length, 1)
  await connect()
  assert.equal(sockets.length, 2)
})

test('if `PtyLink` is closed while it connects, its WebSocket is closed, and no further state is reported', async () => {
  const { link, sockets, states, settle } = startServer()
  link.connect()
  link.close()
  await settle()
  assert.equal(sockets[0]!.isClosed, true)
  assert.deepEqual(states, [{ name: 'connecting' }])
})

test('`PtyLink` refuses typed text while too much earlier typed text waits for the network', async () => {
  const { link, sockets, connect } = startServer()
  await connect()
  Object.assign(sockets[0]!, { bufferedAmount: 4 * 1024 * 1024 })
  assert.equal(link.send('x'), false)
  assert.deepEqual(sockets[0]!.sent, [])
})
