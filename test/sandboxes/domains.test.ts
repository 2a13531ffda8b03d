// A list of domains on a real server, driven by the public SDK, in a network namespace whose Internet the test makes: names
// and addresses of its own.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { Daytona, type Sandbox } from '@daytona/sdk'
import { runCommand } from '#src/kit/run-command.ts'
import { type Listeners, listenIn } from '#src/runner/network/listeners.ts'
import { type NameServer, nameServerIn } from '#src/runner/network/name-server.ts'
import { cannotRun, isPrivateHost, preparePrivateHost, runOnPrivateHost } from '#src/runner/network/private-host.ts'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const dns = '203.0.113.53'
const web = { api: '203.0.113.5', other: '203.0.113.6' }
const metadata = '169.254.169.254'

if (!isPrivateHost) {
  test('a list of domains holds through the life of a sandbox', { skip: cannotRun }, () =>
    runOnPrivateHost(import.meta.filename, 420_000),
  )
} else {
  suite('a list of domains', () => {
    let scratch: string
    let names: NameServer
    let outside: Listeners
    let alcove: Platform
    let daytona: Daytona
    let sandbox: Sandbox

    before(async () => {
      await preparePrivateHost([...Object.values(web), dns, metadata])
      scratch = await mkdtemp(join(tmpdir(), 'alcove-domains-'))
      await writeFile(join(scratch, 'resolv.conf'), `nameserver ${dns}\n`)
      await runCommand(['mount', '--bind', join(scratch, 'resolv.conf'), '/etc/resolv.conf'])
      names = await nameServerIn('outside', dns)
      await names.say({
        'api.example.com': { addresses: [web.api] },
        'other.test': { addresses: [web.other] },
        'rebind.example.com': { addresses: [metadata] },
      })
      outside = await listenIn('outside', [80])
      alcove = await platform({ own: true })
      daytona = new Daytona({ apiKey: alcove.key, apiUrl: `${alcove.url}/api` })
    })
    after(async () => {
      await daytona?.[Symbol.asyncDispose]()
      await alcove?.[Symbol.asyncDispose]()
      await outside?.[Symbol.asyncDispose]()
      await names?.[Symbol.asyncDispose]()
      await rm(scratch, { recursive: true, force: true })
    })

    /** Whether a program inside gets the greeting of who listens there, resolving names as programs do. */
    const reaches = async (to: string) => {
      const script = `exec 3<>/dev/tcp/${to}/80 && read -r line <&3 && [ "$line" = hello ]`
      const { exitCode } = await sandbox.process.executeCommand(
        `timeout 5 bash -c '${script}'`,
        undefined,
        undefined,
        30,
      )
      return exitCode === 0
    }
    const reachesSoon = (to: string) => until(`${to} is reached`, () => reaches(to).catch(() => false), 60)
    const isClosed = async (to: string) => assert.ok(!(await reaches(to)), `${to} is closed`)
    const isClosedSoon = (to: string) =>
      until(`${to} is closed`, async () => !(await reaches(to).catch(() => true)), 60)

    test('from the start: listed names, nothing else, and no name that leads to a closed place', async () => {
      sandbox = await daytona.create({ domainAllowList: 'API.example.com,rebind.example.com' })
      assert.equal(sandbox.domainAllowList, 'api.example.com,rebind.example.com')
      await isClosed(web.api)
      assert.ok(await reaches('api.example.com'))
      assert.ok(await reaches(web.api), 'once its name is known')
      for (const to of ['other.test', web.other, 'rebind.example.com', metadata]) await isClosed(to)
    })

    test('after stop and start', async () => {
      await sandbox.stop()
      await sandbox.start()
      await isClosed(web.api)
      assert.ok(await reaches('api.example.com'))
      await isClosed('other.test')
    })

    test('changed while it runs, by updateNetworkSettings', async () => {
      await sandbox.updateNetworkSettings({ domainAllowList: '*.nowhere.test,other.test' })
      await reachesSoon('other.test')
      await Promise.all([isClosed('api.example.com'), isClosed(web.api)])
      await sandbox.updateNetworkSettings({ networkBlockAll: true })
      await isClosedSoon(web.other)
      await isClosed('other.test')
      await sandbox.updateNetworkSettings({ networkBlockAll: false })
      await reachesSoon(web.api)
      await sandbox.updateNetworkSettings({ domainAllowList: 'api.example.com', networkAllowList: `${web.other}/32` })
      await isClosedSoon('other.test')
      await Promise.all([reachesSoon('api.example.com'), reachesSoon(web.other)])
      await assert.rejects(sandbox.updateNetworkSettings({ domainAllowList: '*' }), /domainAllowList/)
    })

    test('after kill -9 of the runner, and of everything', async () => {
      await sandbox.updateNetworkSettings({ networkAllowList: '' })
      await isClosedSoon(web.other)
      for (const kill of [() => alcove.kill('runner'), () => alcove.killAll().then(alcove.start)]) {
        await kill()
        await reachesSoon('api.example.com')
        await Promise.all([isClosed('other.test'), isClosed(web.other), isClosed(metadata)])
      }
    })
  })
}
