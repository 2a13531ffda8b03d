// Renews the default image of a server that has sandboxes. A build would take minutes, so the server's cache directory contains the
// small image (small-default.ts). A renewal uses a cached image if it was made in the last week.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { readStatus } from '#src/cli/status.ts'
import { createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const monthMs = 31 * 86_400_000

suite('a default image that was replaced by a newer one', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform({ own: true, image: 'small' })
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  test('after a renewal of the default image, new sandboxes have the new image; older sandboxes keep the old', {
    timeout: 900_000,
  }, async () => {
    const images = join(alcove.data, 'runner/images')
    const record = join(images, 'default/image.json')
    await using old = await createBox(alcove)
    await old.run('echo mine > ~/mine')
    await alcove.stop()
    const then = new Date(Date.now() - monthMs).toISOString()
    await writeFile(record, JSON.stringify({ ...JSON.parse(await readFile(record, 'utf8')), madeAt: then }))
    await writeFile(join(images, 'default/rootfs/etc/only-in-the-old'), '')
    await alcove.start()
    // The new image is of today, or of yesterday if the tests have begun before midnight.
    const isRenewed = ({ defaultImage = '' }) =>
      /^of \d{4}-/.test(defaultImage) &&
      !defaultImage.startsWith(`of ${then.slice(0, 10)}`) &&
      !/being renewed/.test(defaultImage)
    await until('the image is renewed', async () => isRenewed(await readStatus(alcove.data)), 840)
    await using fresh = await createBox(alcove)
    assert.equal((await fresh.try('ls /etc/only-in-the-old')).exitCode, 2)
    assert.equal(await fresh.run('python3 -c "print(6 * 7)"'), '42')
    assert.equal(await old.run('cat ~/mine; ls /etc/only-in-the-old'), 'mine\n/etc/only-in-the-old')
    assert.equal((await alcove.api('POST', `/sandbox/${old.id}/stop`)).status, 200)
    const stateOf = async () => (await alcove.api('GET', `/sandbox/${old.id}`)).body['state']
    await until('it is stopped', async () => (await stateOf()) === 'stopped')
    await alcove.api('POST', `/sandbox/${old.id}/start`)
    await until('it is started', async () => (await stateOf()) === 'started')
    assert.equal(await old.run('cat ~/mine; ls /etc/only-in-the-old'), 'mine\n/etc/only-in-the-old')
    assert.ok(existsSync(record))
  })
})
