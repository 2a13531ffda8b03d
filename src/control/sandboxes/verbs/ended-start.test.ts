// Tests starts after which the runner reports only that the sandbox has ended, and never that it started.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { create, get, post } from '#test/control/box.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

suite('a sandbox that ends before its runner reports its start', () => {
  const cause = { detail: 'Its first process was ended from outside the sandbox.' }

  const ends = async (runner: Awaited<ReturnType<typeof connectRunner>>, app: TestControl, generation: number) => {
    const { sandboxId } = await runner.untilAsked((asked) => asked.generation === generation)
    runner.report({ sandboxId, generation, state: 'stopped', cause })
    await untilState(app, sandboxId, 'stopped')
    const { desiredState, errorReason } = await get(app, sandboxId)
    assert.deepEqual([desiredState, errorReason], ['stopped', cause.detail])
    return sandboxId
  }

  test('a sandbox that ends during its create, start or restore becomes `stopped` and can be started again', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(({ target }) => ({ type: target === 'started' ? 'silent' : 'do' }))
    await create(app)
    await ends(runner, app, 1)
    await post(app, 'start')
    const id = await ends(runner, app, 3)
    assert.equal(runner.asked.at(-1)?.isNew, false)
    await post(app, 'archive')
    await untilState(app, id, 'archived')
    const { state } = (await post(app, 'start')).body
    assert.equal(state, 'restoring')
    const { generation } = await runner.untilAsked((asked) => asked.target === 'started' && asked.generation > 4)
    await ends(runner, app, generation)
    runner.behave(() => ({ type: 'do' }))
    await post(app, 'start')
    await untilState(app, id, 'started')
  })

  test('a late report of an earlier generation does not end a newer start', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const id = await create(app)
    await post(app, 'stop')
    await untilState(app, id, 'stopped')
    runner.behave(() => ({ type: 'silent' }))
    await post(app, 'start')
    const { generation } = await runner.untilAsked(({ target, generation: of }) => target === 'started' && of > 1)
    runner.report({ sandboxId: id, generation: generation - 1, state: 'stopped' })
    // Control refuses the report and sends the assignment again. The state does not change.
    const asked = () => runner.asked.filter(({ generation: of }) => of === generation).length
    while (asked() < 2) await new Promise(setImmediate)
    assert.equal((await get(app, id)).state, 'starting')
  })
})
