// Real sandboxes on this machine. Needs root; elsewhere it is skipped and says so.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { cannotRun, TestHost } from './testing/test-host.ts'

suite('a host', { skip: cannotRun }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
  })
  after(async () => {
    await box[Symbol.asyncDispose]()
  })

  test('start makes a sandbox that runs commands, with its own name and files in /etc', async () => {
    const { sandboxId } = await box.started()
    assert.equal(box.host.get(sandboxId)?.status, 'started')
    const said = await box.run(sandboxId, 'hostname; cat /etc/hostname /etc/resolv.conf; stat -c %a /etc/machine-id')
    const hostname = sandboxId.slice(0, 12)
    assert.deepEqual(said, { exitCode: 0, output: `${hostname}\n${hostname}\nnameserver 192.0.2.53\n644` })
  })
})
