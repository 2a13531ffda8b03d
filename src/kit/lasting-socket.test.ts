import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { suite, test } from 'node:test'
import { LastingSocket } from './lasting-socket.ts'
import type { Logger } from './log.ts'

suite('the WebSocket that connects again', () => {
  test('the fourth failed connection in a row is logged as a warning, and then every tenth failure', async () => {
    // The server closes every connection at once, so each attempt fails.
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const levels: string[] = []
    const seen = Promise.withResolvers<void>()
    const note = (level: string) => () => {
      levels.push(level)
      if (levels.length === 35) seen.resolve()
    }
    const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') }
    const { port } = server.address() as { port: number }
    const socket = new LastingSocket({
      url: new URL(`http://127.0.0.1:${port}/`),
      credential: { headers: {} },
      name: 'control',
      log: log as unknown as Logger,
      onText: () => {},
      reconnectMs: { first: 1, longest: 1 },
    })
    try {
      await seen.promise
      const warned = levels.flatMap((level, failure) => (level === 'warn' ? [failure + 1] : []))
      assert.deepEqual(warned, [4, 14, 24, 34])
    } finally {
      socket[Symbol.dispose]()
      server.close()
    }
  })
})
