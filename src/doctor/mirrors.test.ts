import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { noNetworks, readNetworks } from '#src/kit/networks.ts'
import { type Mirrors, packageMirrors, registryMirrors } from './mirrors.ts'

const none: Mirrors = { packages: [], images: [], openNetworks: noNetworks, privateRegistries: [] }
const context = { dataDir: '/', scratch: '/', isRoot: true }
const names: Record<string, string[]> = {
  'deb.debian.org': ['151.101.2.132'],
  'apt.corp': ['10.1.2.3', '151.101.2.132'],
  localhost: ['127.0.0.1'],
  'images.corp': ['192.168.4.5'],
}
const resolve = async (host: string) => names[host] ?? assert.fail(`${host} is unknown`)
const packages = (mirrors: Partial<Mirrors>) => packageMirrors({ ...none, ...mirrors }, resolve).run(context)
const images = (mirrors: Partial<Mirrors>) => registryMirrors({ ...none, ...mirrors }, resolve).run(context)

suite('the mirrors that `alcove doctor` looks up', () => {
  test('`alcove doctor` reports a package mirror at a private address, with the setting that allows it', async () => {
    const { status, found, costs, remedy } = await packages({ packages: ['deb.debian.org', 'apt.corp', 'apt.corp'] })
    assert.equal(status, 'warn')
    assert.equal(found, 'deb.debian.org at 151.101.2.132; apt.corp at 10.1.2.3, 151.101.2.132')
    assert.match(costs ?? '', /packages from apt\.corp:/)
    assert.equal(remedy, 'ALCOVE_OPEN_NETWORKS=10.1.2.3')
    assert.match((await packages({ packages: ['localhost:3142'] })).remedy ?? '', /on another machine/)
  })

  test('`alcove doctor` accepts a package mirror at a public address or in a network that a setting allows', async () => {
    const openNetworks = readNetworks('10.1.0.0/16')
    assert.equal((await packages({ packages: ['deb.debian.org'] })).status, 'ok')
    assert.equal((await packages({ packages: ['apt.corp'], openNetworks: openNetworks! })).status, 'ok')
  })

  test('`alcove doctor` reports a registry mirror at a private address, with the setting that allows it', async () => {
    const mirrors = { images: ['images.corp:5000'], privateRegistries: ['old.corp'] }
    const { status, found, remedy } = await images(mirrors)
    assert.deepEqual([status, found], ['warn', 'images.corp:5000 at 192.168.4.5'])
    assert.equal(remedy, 'ALCOVE_PRIVATE_REGISTRIES=old.corp,images.corp:5000')
    assert.equal((await images({ ...mirrors, privateRegistries: ['images.corp:5000'] })).status, 'ok')
  })

  test('`alcove doctor` reports a package mirror whose name has no address, but not the lack of mirrors', async () => {
    const { status, found } = await packages({ packages: ['gone.test'] })
    assert.deepEqual([status, found], ['ok', 'gone.test has no address'])
    assert.deepEqual(await images({}), { name: 'registry mirrors', status: 'ok', found: 'none' })
  })
})
