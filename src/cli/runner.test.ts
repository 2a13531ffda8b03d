import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { endOfEmptying, joinCommand, runnerLines } from './runner.ts'

suite('alcove runner add', () => {
  const url = 'http://127.0.0.1:4600'

  test('if a token has a certificate authority’s hash, the printed join command calls the port for hosts', () => {
    const token = `alr_0a.${'h'.repeat(43)}`
    const network = joinCommand(token, { url, hosts: '10.0.0.7:4603' })
    assert.match(network, /: \.\/alcove runner --join https:\/\/10\.0\.0\.7:4603 --token alr_0a\.h{43}$/)
    const here = joinCommand('alr_0a', { url })
    assert.match(here, /^On this machine.* --join http:\/\/127\.0\.0\.1:4600 --data DIRECTORY --token alr_0a$/)
  })
})

suite('alcove runner list', () => {
  test('`alcove runner list` prints a heading, and a line for each runner with its state and sandboxes', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { body } = await app.as('member').post('/sandbox', {})
    await untilState(app, body.id, 'started')
    await app.as('admin').post('/runners', { name: 'second' })
    const lines = async () => runnerLines((await app.as('admin').get('/runners')).body)
    const [heading, ...others] = await lines()
    assert.equal(heading, 'RUNNER               REGION       STATE      SANDBOXES')
    assert.deepEqual(others.toSorted(), [
      'local                local        ready      1',
      'second               local        starting   0',
    ])
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    await app.database.sql`update sandboxes set warm_pool_id = 'pool' where id = ${body.id}`
    const drained = 'local                local        drained    1, 1 of them warm (nobody owns them yet)'
    assert.ok((await lines()).includes(drained), (await lines()).join('\n'))
  })
})

suite('alcove runner drain --move', () => {
  const none = { isEmptied: true, running: 0, left: 0, moving: 0, staying: [] }

  test('`drain --move` ends when the runner is empty, or lists each sandbox that cannot be moved and why', () => {
    assert.match(endOfEmptying('second', none)?.[0] ?? '', /^second is empty\./)
    const staying = [{ sandboxId: 'box', reason: 'It is in error.' }]
    assert.equal(endOfEmptying('second', { ...none, left: 2, staying }), undefined)
    assert.deepEqual(endOfEmptying('second', { ...none, left: 1, staying }), [
      '1 sandbox cannot be moved from second:',
      'box  It is in error.',
    ])
  })

  test('`drain --move` ends when another operator stops the emptying of the runner', () => {
    const lines = endOfEmptying('second', { ...none, isEmptied: false, left: 3 })
    assert.deepEqual(lines, ['second is no longer being emptied.'])
  })
})

suite('alcove runner list', () => {
  test('`alcove runner list` shows since when a runner is silent or lost, and what became of its sandboxes', () => {
    const runner = { id: 'far', region: 'local', state: 'unresponsive', sandboxes: 3, warm: 0, isEmptied: false }
    const silentSince = '2026-11-27T00:00:00.000Z'
    const silent = { ...runner, silentSince, givenUp: 0, leftovers: 0 }
    const lost = { ...silent, lostAt: '2026-11-27T00:10:00.000Z', givenUp: 2, leftovers: 1 }
    const [, first, second] = runnerLines([silent, lost])
    assert.match(first ?? '', /silent +3, not heard since 2026-11-27T00:00:00\.000Z$/)
    assert.match(second ?? '', /lost +3, .*, lost: 2 are in error, 1 can start elsewhere$/)
  })
})
