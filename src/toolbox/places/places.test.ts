import assert from 'node:assert/strict'
import { homedir } from 'node:os'
import { suite, test } from 'node:test'
import { startToolbox } from '../testing/toolbox.ts'

suite('GET /user-home-dir, GET /work-dir, GET /version', () => {
  test('GET /user-home-dir and GET /work-dir return the directory as {dir}', async () => {
    await using box = await startToolbox()
    assert.deepEqual(await box.get('/user-home-dir'), { status: 200, body: { dir: homedir() } })
    assert.deepEqual(await box.get('/work-dir'), { status: 200, body: { dir: homedir() } })
  })

  test('GET /version returns Alcove’s version as {version}', async () => {
    await using box = await startToolbox()
    const { status, body } = await box.get('/version')
    assert.equal(status, 200)
    assert.match(body.version, /^\d+\.\d+\.\d+/)
  })

  test('GET /user-home-dir answers 422 if the image has no shell; a path without an endpoint answers 404', async () => {
    await using box = await startToolbox({ env: { PATH: '/nowhere' } })
    assert.equal((await box.get('/user-home-dir')).status, 422)
    const { status, body } = await box.get('/nothing-here')
    assert.deepEqual([status, body.source], [404, 'DAYTONA_DAEMON'])
  })
})
