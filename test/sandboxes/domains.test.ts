// Tests a sandbox's allowed domains with the public SDK. The server runs in a network namespace with a simulated Internet, which
// has its own names and addresses.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { runCommand } from '#src/kit/run-command.ts'
import { type Listeners, listenIn } from '#src/runner/network/testing/listeners.ts'
import { type NameServer, nameServerIn } from '#src/runner/network/testing/name-server.ts'
import { isPrivateHost, preparePrivateHost, runOnPrivateHost } from '#src/runner/network/testing/private-host.ts'
import { needsRoot } from '#test/needs-root.ts'
import { until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const dns = '203.0.113.53'
const web = { api: '203.0.113.5', other: '203.0.113.6' }
const metadata = '169.254.169.254'

if (!isPrivateHost) {
  test(
    'a sandbox’s list of allowed domains is in force from its creation on, even after restarts and kills',
    { skip: needsRoot },
    () => runOnPrivateHost(import.meta.filename, 420_000),
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
      alcove = await platform({ own: true, image: 'small', env: { ALCOVE_OPEN_NETWORKS: '203.0.113.0/24' } })
      daytona = connectTo(alcove)
    })
    after(async () => {
      await daytona?.[Symbol.asyncDispose]()
      await alcove?.[Symbol.asyncDispose]()
      await outside?.[Symbol.asyncDispose]()
      await names?.[Symbol.asyncDispose]()
      await rm(scratch, { recursive: true, force: true })
    })

    /** Whether a program in the sandbox can resolve the name `to`, and gets the greeting `hello` from the server with this name. */
    const reachesFrom = async (from: Sandbox, to: string, seconds = 5) => {
      const script = `exec 3<>/dev/tcp/${to}/80 && read -r line <&3 && [ "$line" = hello ]`
      const { exitCode } = await from.process.executeCommand(
        `timeout ${seconds} bash -c '${script}'`,
        undefined,
        undefined,
        30,
      )
      return exitCode === 0
    }
    const reaches = (to: string) => reachesFrom(sandbox, to)
    const reachesSoon = (to: string) => until(`${to} is reached`, () => reaches(to).catch(() => false), 60)
    const isClosed = async (to: string) => assert.ok(!(await reaches(to)), `${to} is closed`)
    const isClosedSoon = (to: string) =>
      until(`${to} is closed`, async () => !(await reaches(to).catch(() => true)), 60)

    test('a sandbox with a domain list connects only to the listed domains, and never to a forbidden address', async () => {
      sandbox = await daytona.create({ domainAllowList: 'API.example.com,rebind.example.com' })
      assert.equal(sandbox.domainAllowList, 'api.example.com,rebind.example.com')
      await isClosed(web.api)
      assert.ok(await reaches('api.example.com'))
      assert.ok(await reaches(web.api), 'once its name is known')
      for (const to of ['other.test', web.other, 'rebind.example.com', metadata]) await isClosed(to)
    })

    test('a domain list stays in force after a stop and a start of the sandbox', async () => {
      await sandbox.stop()
      await sandbox.start()
      await isClosed(web.api)
      assert.ok(await reaches('api.example.com'))
      await isClosed('other.test')
    })

    test('`updateNetworkSettings` changes the domain list of a running sandbox', async () => {
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

    test('network rules stay in force after pause, archive and kill -9 of the runner, and in a fork', async () => {
      const name = 'api.example.com'
      const everywhere = [web.other, name, metadata]
      const policies = [
        { policy: { networkBlockAll: true }, open: '' },
        { policy: { networkAllowList: `${web.other}/32` }, open: web.other },
        { policy: { domainAllowList: name }, open: name },
      ]
      const made = await Promise.all(policies.map(({ policy }) => daytona.create(policy)))
      const hold = async (after: string, boxes: readonly Sandbox[]) => {
        const check = boxes.flatMap((box, index) =>
          everywhere.map(async (to) => {
            const what = `${after}: ${JSON.stringify(policies[index]?.policy)}, ${to}`
            if (policies[index]?.open === to) await until(what, () => reachesFrom(box, to).catch(() => false), 60)
            else assert.ok(!(await reachesFrom(box, to, 2)), what)
          }),
        )
        await Promise.all(check)
      }
      const all = (work: (box: Sandbox) => Promise<unknown>) => Promise.all(made.map(work))
      await all((box) => box.pause())
      await all((box) => box.start())
      await hold('resume', made)
      const forks = await all((box) => box.fork())
      await hold('fork', forks as Sandbox[])
      await Promise.all((forks as Sandbox[]).map((box) => box.delete()))
      await all((box) => box.archive())
      const state = async ({ id }: Sandbox) => (await alcove.api('GET', `/sandbox/${id}`)).body['state']
      await all((box) => until('it is archived', async () => (await state(box)) === 'archived', 60))
      await all((box) => box.start())
      await hold('restore', made)
      await alcove.kill('runner')
      await all((box) =>
        until(
          'it answers',
          () =>
            box.process.executeCommand('true').then(
              () => true,
              () => false,
            ),
          60,
        ),
      )
      await hold('kill -9 of the runner', made)
      await all((box) => box.delete())
    })

    test('a domain list stays in force after kill -9 of the runner, and after kill -9 of all programs', async () => {
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
