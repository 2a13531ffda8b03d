// What a caller hears when the kernel has killed for want of memory: by each way to run something in a real sandbox.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

let alcove: Platform
let box: Box

before(async () => {
  alcove = await platform()
  box = await createBox(alcove, { memory: 1 })
})
after(async () => {
  await box?.[Symbol.asyncDispose]()
  await alcove?.[Symbol.asyncDispose]()
})

const fill = 'a = bytearray(3 << 30)'
const command = `echo before; python3 -c '${fill}'`
const line = /\n\[out of memory: a process was killed at the limit of 1 GiB of this sandbox\]\n$/

suite('a process that is killed for want of memory', () => {
  test('execute: 200 with 137, what was printed, a line with the limit, and the mark', async () => {
    const { status, body } = await box.toolbox('POST', '/process/execute', { command, timeout: 60 })
    assert.deepEqual([status, body['exitCode'], body['oom']], [200, 137, true])
    assert.match(String(body['result']), /^before\n/)
    assert.match(String(body['result']), line)
  })

  test('code-run: the same', async () => {
    const { body } = await box.toolbox('POST', '/process/code-run', { code: `print(1)\n${fill}`, language: 'python' })
    assert.deepEqual([body['exitCode'], body['oom']], [137, true])
    assert.match(String(body['result']), line)
  })

  test('session: the same, as a line of stderr', async () => {
    await box.toolbox('POST', '/process/session', { sessionId: 's' })
    const { body } = await box.toolbox('POST', '/process/session/s/exec', { command })
    assert.deepEqual([body['exitCode'], body['oom'], body['stdout']], [137, true, 'before\n'])
    assert.match(String(body['stderr']), line)
    assert.match(String(body['output']), line)
  })

  test('interpreter: a line of stderr, and the limit in the error that the SDK throws', async () => {
    await using daytona = connectTo(alcove)
    const sandbox = await daytona.get(box.id)
    let stderr = ''
    const onStderr = ({ output }: { output: string }) => {
      stderr += output
    }
    const running = sandbox.codeInterpreter.runCode(fill, { onStderr })
    await assert.rejects(running, /killed by signal 9: out of memory, the limit is 1 GiB/)
    assert.match(stderr, line)
  })

  test('a command that fails for another reason says nothing of memory', async () => {
    const { body } = await box.toolbox('POST', '/process/execute', { command: 'kill -9 $$' })
    assert.deepEqual([body['exitCode'], body['oom'], body['result']], [137, undefined, ''])
  })
})
