import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Agent, AgentGone, AgentRefused, type RunningCommand, StartFailed } from '../agent/agent.ts'
import { runToEnd } from './run.ts'

const spec = { argv: ['x'], env: {}, user: 'u', mergeOutput: true }
const never = { signal: new AbortController().signal, [Symbol.dispose]: () => undefined }

const agentWith = (exec: Agent['exec']) => ({ exec }) as Agent

const commandThat = (follow: () => AsyncGenerator<{ stream: 'stdout'; data: Buffer }>) => {
  const heard: string[] = []
  const command: RunningCommand = {
    pid: 2,
    exit: Promise.resolve({ exitCode: 0, signal: null }),
    inputGone: Promise.resolve(),
    unsentBytes: 0,
    write: () => undefined,
    endInput: () => undefined,
    kill: (signal) => void heard.push(`kill ${signal}`),
    close: () => void heard.push('close'),
    [Symbol.asyncIterator]: follow,
  }
  return { command, heard }
}

const failsWith = async (exec: Agent['exec'], expected: string | { code: string; message: string }) => {
  await assert.rejects(
    runToEnd(agentWith(exec), spec, never, () => undefined),
    typeof expected === 'string' ? { code: expected } : expected,
  )
}

suite('a command that runs to its end', () => {
  test('a command fails with `not_started` if the sandbox is stopped or deleted while the command runs', async () => {
    const { command, heard } = commandThat(async function* () {
      yield { stream: 'stdout', data: Buffer.from('a') }
      throw new AgentGone('gone')
    })
    await failsWith(async () => command, {
      code: 'not_started',
      message: 'The sandbox was stopped or deleted before the command had ended. Is the Sandbox started?',
    })
    assert.deepEqual(heard, ['kill 9', 'close'])
  })

  test('if the agent refuses or fails, the caller gets an error that fits, never a 500', async () => {
    const refusing = (error: Error) => async () => {
      throw error
    }
    await failsWith(refusing(new AgentGone('gone')), 'not_started')
    await failsWith(refusing(new AgentRefused('busy', 'EAGAIN')), 'rate_limited')
    await failsWith(refusing(new AgentRefused('ending', 'EAGAIN')), 'not_started')
    await failsWith(refusing(new TypeError('what is this')), 'sandbox_silent')
    const noProcesses = runToEnd(
      agentWith(refusing(new AgentRefused('system', 'EAGAIN'))),
      spec,
      never,
      () => undefined,
    )
    await assert.rejects(noProcesses, (error) => error instanceof StartFailed && error.errno === 'EAGAIN')
  })

  test('if a command starts only after its deadline, the command is killed', async () => {
    const { command, heard } = commandThat(async function* () {})
    const started = Promise.withResolvers<RunningCommand>()
    const controller = new AbortController()
    const deadline = { signal: controller.signal, [Symbol.dispose]: () => undefined }
    const run = runToEnd(
      agentWith(() => started.promise),
      spec,
      deadline,
      () => undefined,
    )
    const reason = new Error('too late')
    controller.abort(reason)
    await assert.rejects(run, reason)
    started.resolve(command)
    await started.promise
    assert.deepEqual(heard, ['kill 9', 'close'])
  })
})
