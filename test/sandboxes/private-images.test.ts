// Tests images of registries that demand an account, on a real server, through the public clients.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { Configuration, DockerRegistryApi } from '@daytona/api-client'
import { type Daytona, Image } from '@daytona/sdk'
import { runCommand } from '#src/kit/run-command.ts'
import { TestRegistry } from '#src/runner/images/testing/registry.ts'
import { GuardedRegistry } from '#test/registry/guarded-registry.ts'
import { until } from './box.ts'
import { makeBusyboxImage, noBusybox } from './busybox-image.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const account = { username: 'team', password: 'hidden-from-everybody' }

suite('private images', { skip: noBusybox }, () => {
  let alcove: Platform
  let daytona: Daytona
  let registries: DockerRegistryApi
  const guarded: GuardedRegistry[] = []
  before(async () => {
    for (const way of ['basic', 'token'] as const)
      guarded.push(await GuardedRegistry.guard(await TestRegistry.start(), way, { team: account.password }))
    const names = guarded.map(({ host }) => host).join(',')
    alcove = await platform({ own: true, image: 'small', env: { ALCOVE_PLAIN_REGISTRIES: names } })
    daytona = connectTo(alcove)
    registries = new DockerRegistryApi(
      new Configuration({ accessToken: alcove.key, basePath: `${alcove.url}/api`, baseOptions: {} }),
    )
  })
  after(async () => {
    await daytona?.[Symbol.asyncDispose]()
    for (const each of guarded) {
      await each.registry[Symbol.asyncDispose]()
      await each[Symbol.asyncDispose]()
    }
    await alcove?.[Symbol.asyncDispose]()
  })

  const stateOf = async (name: string) => (await alcove.api('GET', `/snapshots/${name}`)).body
  const settled = async (name: string) => {
    await until('the snapshot is settled', async () =>
      ['active', 'error', 'build_failed'].includes(String((await stateOf(name))['state'])),
    )
    return stateOf(name)
  }

  test('snapshots and builds pull images with their organization’s registry account and its newest password', async () => {
    const [basic, token] = guarded as [GuardedRegistry, GuardedRegistry]
    const tool = basic.registry.put('team/tool:1', makeBusyboxImage())
    const other = token.registry.put('team/other:1', makeBusyboxImage())
    await alcove.api('POST', '/snapshots', { name: 'early', imageName: tool })
    assert.match(String((await settled('early'))['errorReason']), /wants credentials/)

    await assert.rejects(
      registries.createRegistry({ name: 'team', url: basic.host, ...account, password: 'wrong' }),
      ({ response }: { response: { status: number } }) => response.status === 400,
    )
    for (const { host } of guarded) await registries.createRegistry({ name: 'team', url: `http://${host}`, ...account })
    const { data } = await registries.listRegistries()
    assert.deepEqual(
      data.map(({ username, registryType }) => [username, registryType]),
      [
        ['team', 'organization'],
        ['team', 'organization'],
      ],
    )

    const snapshot = await daytona.snapshot.create({ name: 'tool', image: tool })
    assert.equal(snapshot.state, 'active')
    const image = Image.base(other).dockerfileCommands([`COPY --from=${tool} /etc/motto /etc/second`])
    const logs: string[] = []
    const sandbox = await daytona.create({ image }, { onSnapshotCreateLogs: (chunk) => logs.push(chunk) })
    assert.equal((await sandbox.process.executeCommand('cat /etc/motto /etc/second')).result, 'small\nsmall\n')
    await sandbox.delete()
    assert.doesNotMatch(logs.join(''), /hidden-from/)

    // The registry changes the password: the old one fails, and the new one works for the same snapshot.
    basic.accounts.set('team', 'hidden-from-everybody-2')
    await alcove.api('POST', '/snapshots/early/activate')
    assert.match(String((await settled('early'))['errorReason']), /does not show it to the account/)
    const registry = data.find(({ url }) => url.endsWith(basic.host))
    assert.ok(registry)
    const { id, name, url, username } = registry
    await registries.updateRegistry(id, { name, url, username, password: 'hidden-from-everybody-2' })
    await alcove.api('POST', '/snapshots/early/activate')
    assert.equal((await settled('early'))['state'], 'active')

    for (const each of data) await registries.deleteRegistry(each.id)
    await alcove.api('POST', '/snapshots', { name: 'late', imageName: tool })
    assert.match(String((await settled('late'))['errorReason']), /wants credentials/)

    // The password is in no log, record or layer, and not in the database.
    const found = await runCommand(['sh', '-c', `grep -rlF hidden-from ${alcove.data} || true`], { timeoutMs: 60_000 })
    assert.equal(String(found).trim(), '')
  })
})
