import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { suite, test } from 'node:test'
import { confined, users } from '#src/kit/confined.ts'
import { createLog } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { needsRoot } from '#test/needs-root.ts'
import { LastingProgram } from './lasting-program.ts'

type To = { type: 'echo'; text: string } | { type: 'end' } | { type: 'take'; bytes: number }
type Heard = { type: 'heard'; text: string; pid: number }

const MiB = 1024 ** 2

/**
 * Writable memory that a Node process has when it starts, in MiB. Most of this memory is reserved for machine code and not used.
 */
const nodeMiB = 600

/** Runs testing/lasting-child.ts as a `LastingProgram`. Its processes may use about `limitMiB` of memory. */
const startProgram = async (limitMiB = 1024) => {
  const told = new EventEmitter()
  const program = new LastingProgram<To, { type: 'serving' } | Heard>({
    name: 'the program of a test',
    command: () =>
      confined({
        command: nodeCommand('src/runner/network/testing/lasting-child.ts'),
        uid: users.egress,
        shown: ownCode(),
        sockets: 'none',
        limits: { data: (nodeMiB + limitMiB) * MiB },
      }),
    prepare: async () => {},
    begin: () => [{ type: 'echo', text: 'first' }],
    onServing: async () => {},
    onWord: ({ text, pid }) => told.emit(text, pid),
    log: createLog('test', 'silent'),
  })
  const hear = async (text: string): Promise<number> => (await once(told, text))[0]
  const first = hear('first')
  await program.serve()
  return { program, hear, pid: await first, [Symbol.asyncDispose]: () => program.close() }
}

suite('`LastingProgram` keeps a helper program of the runner running', { skip: needsRoot }, () => {
  test('a `LastingProgram` that ends is started again, and the new process gets the same first messages', async () => {
    await using started = await startProgram()
    const { program, hear, pid } = started
    const again = hear('first')
    program.say({ type: 'end' })
    assert.notEqual(await again, pid)
    await program.serve()
    const answer = hear('later')
    program.say({ type: 'echo', text: 'later' })
    assert.equal(await answer, await again)
  })

  test('a `LastingProgram` that exceeds its memory limit, inside or outside of its heap, is started again', async () => {
    await using started = await startProgram(256)
    const { program, hear, pid } = started
    program.say({ type: 'take', bytes: 64 * MiB })
    const still = hear('still')
    program.say({ type: 'echo', text: 'still' })
    assert.equal(await still, pid)
    const again = hear('first')
    program.say({ type: 'take', bytes: 300 * MiB })
    assert.notEqual(await again, pid)
  })

  test('`close` of a `LastingProgram` ends the program, which then cannot be started again', async () => {
    const { program, pid } = await startProgram()
    await program.close()
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    await assert.rejects(program.serve(), /the program of a test is closed/)
  })
})
