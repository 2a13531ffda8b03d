import assert from 'node:assert/strict'
import { afterEach, beforeEach, mock, test } from 'node:test'
import { followLog, type LogSocket } from './log-link.ts'

beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
afterEach(() => mock.timers.reset())

const startServer = (answer?: Error) => {
  const sockets: (LogSocket & { isClosed: boolean })[] = []
  const heard: string[] = []
  const stop = followLog({
    open: async () => {
      const socket = {
        isClosed: false,
        onopen: null,
        onmessage: null,
        onclose: null,
        close: () => {},
      } as never as (typeof sockets)[number]
      socket.close = () => {
        socket.isClosed = true
      }
      sockets.push(socket)
      return socket
    },
    ask: async () => {
      if (answer !== undefined) throw answer
    },
    onState: (state) => heard.push('reason' in state ? `${state.name}: ${state.reason}` : state.name),
    onBegin: () => heard.push('<begin>'),
    onData: (data) => heard.push(Buffer.from(data).toString()),
  })
  const settle = async () => {
    for (let i = 0; i < 10; i++) await Promise.resolve()
  }
  const last = () => sockets.at(-1)!
  return { sockets, heard, stop, settle, last }
}

test('the logs tab (`followLog`) does not connect again after the log has ended', async () => {
  const { sockets, heard, settle, last } = startServer()
  await settle()
  last().onopen!({} as Event)
  last().onmessage!({ data: Buffer.from('hi') } as never)
  last().onclose!({ code: 1000, reason: '' } as CloseEvent)
  mock.timers.tick(60_000)
  await settle()
  assert.deepEqual(heard, ['connecting', '<begin>', 'following', 'hi', 'ended'])
  assert.equal(sockets.length, 1)
})

test('`followLog` reports a broken connection, connects again, and gets the log from its beginning', async () => {
  const { sockets, heard, settle, last } = startServer(new Error('The sandbox is not started.'))
  await settle()
  last().onopen!({} as Event)
  last().onclose!({ code: 1006, reason: '' } as CloseEvent)
  await settle()
  mock.timers.tick(1000)
  await settle()
  last().onopen!({} as Event)
  assert.deepEqual(heard.slice(3), ['waiting: The sandbox is not started.', 'connecting', '<begin>', 'following'])
  assert.equal(sockets.length, 2)
})

test('after `followLog` is stopped, it closes its socket and does not connect again', async () => {
  const { sockets, heard, settle, last, stop } = startServer()
  await settle()
  stop()
  last().onclose!({ code: 1006, reason: '' } as CloseEvent)
  mock.timers.tick(60_000)
  await settle()
  assert.equal(sockets.length, 1)
  assert.equal(last().isClosed, true)
  assert.deepEqual(heard, ['connecting'])
})
