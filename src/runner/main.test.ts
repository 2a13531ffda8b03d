// Tests the runner as `up` starts it: a process of its own that reads its settings from the environment.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, test } from 'node:test'

const program = join(import.meta.dirname, '../../bin/runner.ts')

suite('the runner’s program', () => {
  test('a runner that cannot start writes the reason to its log, tells its parent process, and exits with 1', async () => {
    const env = { PATH: process.env['PATH'], NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }
    const child = fork(program, { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    let said = ''
    child.stderr?.on('data', (data) => {
      said += data
    })
    const told: { type: string; why: string }[] = []
    child.on('message', (message) => told.push(message as { type: string; why: string }))
    const [code] = await once(child, 'close')
    assert.deepEqual([code, told.length, told[0]?.type], [1, 1, 'barred'])
    assert.match(told[0]?.why ?? '', /ALCOVE_RUNNER_DIR is missing/)
    const { level, msg } = JSON.parse(said.trim().split('\n').at(-1) ?? '')
    assert.deepEqual([level, msg], [60, told[0]?.why])
  })
})
