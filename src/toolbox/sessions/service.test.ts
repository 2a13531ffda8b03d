import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { AgentGone, AgentRefused } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { assignmentWith } from '../testing/assignment.ts'
import { runCommand } from './service.ts'

suite('a session command that never ran', () => {
  /** Runs a command that never runs. `get`: what the agent then answers about the session. */
  const run = (get: () => Promise<{ state: string }>) => {
    const execAndFollow = async function* () {
      yield { type: 'exit', end: null }
    }
    const sandbox = { assignment: assignmentWith({}), agent: { sessions: { execAndFollow, get } } }
    const options = { idempotencyKey: undefined, signal: new AbortController().signal }
    return runCommand(sandbox as unknown as ToolboxSandbox, 's', { body: { command: 'true' } }, options)
  }
  const failing = (error: Error) => () => Promise.reject(error)

  test('a session command that never ran fails with `session_ended` only if its session has ended', async () => {
    await assert.rejects(
      run(async () => ({ state: 'ended' })),
      { code: 'session_ended' },
    )
    await assert.rejects(run(failing(new AgentRefused('job', 'ENOENT'))), { code: 'session_ended' })
    await assert.rejects(run(failing(new AgentGone('gone'))), { code: 'not_started' })
    await assert.rejects(run(failing(new AgentRefused('busy', 'EMFILE'))), { code: 'rate_limited' })
    assert.equal((await run(async () => ({ state: 'running' }))).exitCode, -1)
  })
})
