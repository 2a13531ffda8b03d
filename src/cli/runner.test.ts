import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'
import { joinCommand, runnerLines } from './runner.ts'

suite('alcove runner add', () => {
  const url = 'http://127.0.0.1:4600'

  test('the printed command joins over the network if the token and the server are for it', () => {
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
    const drained = 'local                local        drained    1, of which 1 warm, of nobody yet'
    assert.ok((await lines()).includes(drained), (await lines()).join('\n'))
  })
})
