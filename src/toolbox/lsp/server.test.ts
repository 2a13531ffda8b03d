import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Agent, RunningCommand } from '../agent/agent.ts'
import { assignmentWith } from '../testing/assignment.ts'
import { bounds, LanguageServer } from './server.ts'

suite('the limits of a language server', () => {
  test('a language server that writes too much before the first call is ended', async () => {
    const command = {
      unsentBytes: 0,
      exit: Promise.resolve({ exitCode: 0, signal: null }),
      close: () => undefined,
      async *[Symbol.asyncIterator]() {
        yield { stream: 'stderr', data: Buffer.from('12345') }
      },
    } as unknown as RunningCommand
    const sandbox = { agent: { exec: async () => command } as unknown as Agent, assignment: assignmentWith({}) }
    const server = await LanguageServer.run(sandbox, { argv: ['x'], env: {} }, { ...bounds, outputBytes: 4 })
    await server.ended
    await assert.rejects(server.request('initialize', {}), { status: 422, message: /writes more than 4 bytes/ })
  })

  test('a language server whose unread requests need more memory than its organization has left is ended', async () => {
    const ended = Promise.withResolvers<void>()
    const command = {
      unsentBytes: 0,
      exit: ended.promise,
      write: () => Object.assign(command, { unsentBytes: 200 * 1024 ** 2 }),
      close: ended.resolve,
      [Symbol.asyncIterator]: () => ({ next: () => ended.promise }),
    } as unknown as RunningCommand
    const sandbox = { agent: { exec: async () => command } as unknown as Agent, assignment: assignmentWith({}) }
    const limits = { ...bounds, unsentBytes: 1024 ** 3 }
    const server = await LanguageServer.run(sandbox, { argv: ['x'], env: {} }, limits)
    assert.throws(() => server.notify('initialized', {}), { status: 422, message: /more memory for its messages/ })
    await server.ended
  })
})
