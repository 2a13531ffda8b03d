// Sandboxes from images, by the public SDK: a registry on loopback serves one static program.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { type Daytona, Image } from '@daytona/sdk'
import { makeImage, type TarEntry, tarOf } from '#src/runner/images/testing/oci-image.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const busybox = '/bin/busybox'
const applets = ['sh', 'cat', 'ls', 'echo', 'mkdir']

const makeTool = () => {
  const entries: TarEntry[] = [
    { path: 'bin', type: '5' },
    { path: 'bin/busybox', content: readFileSync(busybox), mode: 0o755 },
    ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
    { path: 'etc', type: '5' },
    { path: 'etc/motto', content: 'small\n' },
  ]
  return makeImage({ layers: [tarOf(entries)], config: { Env: ['PATH=/bin', 'FROM_IMAGE=yes'], User: '0' } })
}

suite('sandboxes from images', { skip: existsSync(busybox) ? false : 'needs busybox-static' }, () => {
  let alcove: Platform
  let registry: TestRegistry
  let daytona: Daytona
  let reference: string
  before(async () => {
    registry = await TestRegistry.start()
    reference = registry.put('team/tool:1', makeTool())
    alcove = await platform({ own: true, env: { ALCOVE_PLAIN_REGISTRIES: registry.host } })
    daytona = connectTo(alcove)
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    await registry?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('a snapshot of an image, and a sandbox made from it', async () => {
    const snapshot = await daytona.snapshot.create({ name: 'tool', image: reference })
    assert.equal(snapshot.state, 'active')
    const sandbox = await daytona.create({ snapshot: 'tool' })
    const said = await sandbox.process.executeCommand('cat /etc/motto; echo $FROM_IMAGE')
    assert.deepEqual([said.exitCode, said.result], [0, 'small\nyes\n'])
    await sandbox.delete()
  })

  test('create with the name of an image, and again', async () => {
    for (const _ of [1, 2]) {
      const sandbox = await daytona.create({ image: reference, resources: { cpu: 1, memory: 1, disk: 1 } })
      assert.equal(sandbox.state, 'started')
      assert.equal((await sandbox.process.executeCommand('cat /etc/motto')).result, 'small\n')
      await sandbox.delete()
    }
    assert.equal(registry.asked.filter((path) => path.includes('/manifests/')).length < 8, true)
  })

  test('create with a definition: its commands have run, and what fails says why', async () => {
    const image = Image.base(reference).env({ COLOR: 'red' }).runCommands('echo $COLOR > /made').workdir('/srv/app')
    const sandbox = await daytona.create({ image })
    const said = await sandbox.process.executeCommand('cat /made; echo $COLOR; ls -d /srv/app')
    assert.equal(said.result, 'red\nred\n/srv/app\n')
    await sandbox.delete()
    const logs: string[] = []
    await daytona.snapshot.create(
      { name: 'made', image: Image.base(reference).runCommands('echo once; sleep 1; echo $((20 + 3))') },
      { onLogs: (chunk) => logs.push(chunk) },
    )
    assert.match(logs.join('\n'), /Line 2: echo once; [^\n]*\nonce\n23/)
    const failing = Image.base(reference).runCommands('echo never again >&2; exit 4')
    // The SDK hears of it by an event, from which it takes the state alone.
    await assert.rejects(daytona.create({ name: 'failing', image: failing }), /build_failed/)
    const { body } = await alcove.api('GET', '/sandbox/failing')
    assert.deepEqual([body['state'], body['errorReason']], ['build_failed', 'Line 2: exit code 4\nnever again'])
    const { url } = (await alcove.api('GET', '/sandbox/failing/build-logs-url')).body
    const log = await fetch(`${url}?follow=true`, { headers: { authorization: `Bearer ${alcove.key}` } })
    assert.match(
      await log.text(),
      /\nLine 2: echo never again >&2; exit 4\nnever again\nLine 2: exit code 4\nnever again\n$/,
    )
  })
})
