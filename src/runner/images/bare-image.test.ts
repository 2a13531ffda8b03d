// Tests images that lack most of the default image: they have no program but busybox, and neither bash nor home directories. Only
// one image has `/etc` and users.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { agentAt } from '#src/toolbox/agent/agent.ts'
import { execute } from '#src/toolbox/exec/service.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { TestHost } from '../testing/test-host.ts'
import { Library } from './library.ts'
import { standardLimits } from './limits.ts'
import { makeImage, type TarEntry, tarOf, writeLayout } from './testing/oci-image.ts'

const busybox = '/bin/busybox'
const needs = needsRoot || (existsSync(busybox) ? false : 'needs busybox-static')

const applets = ['sh', 'id', 'cat', 'ls', 'pwd', 'touch', 'echo', 'grep', 'head', 'hostname']

const busyboxFiles = (): TarEntry[] => [
  { path: 'bin', type: '5' },
  { path: 'bin/busybox', content: readFileSync(busybox), mode: 0o755 },
  ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
]

/** `security.capability` of Debian's `ping`: CAP_NET_RAW, permitted and effective (capabilities(7), version 2). */
const mayUseRawSockets = Buffer.from(Uint32Array.of(0x02000001, 1 << 13, 0, 0, 0).buffer)

const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))

suite('sandboxes of images that contain only busybox, or not even a shell', { skip: needs }, () => {
  let host: TestHost

  const bring = async (image: string, entries: readonly TarEntry[], config: Record<string, unknown> = {}) => {
    const files = join(host.directory, 'in')
    writeLayout(makeImage({ layers: [tarOf(entries)], config }), join(files, image))
    const library = new Library({
      poolDir: join(host.directory, 'library'),
      filesDir: files,
      registries: { plainRegistries: [], authFile: undefined, publicNetwork },
      limits: { ...standardLimits, keepFreeBytes: 0 },
      log: silentLog(),
    })
    const brought = await library.bring({ image, source: { kind: 'file', path: image }, maxGiB: 1 })
    await rename(library.rootfsOf(image) as string, join(host.directory, image))
    return brought.config
  }

  before(async () => {
    host = await TestHost.start()
    await mkdir(join(host.directory, 'in'))
  })
  after(() => host?.[Symbol.asyncDispose]())

  const run = async (assignment: Assignment, command: string, user: string) => {
    const socketPath = host.host.get(assignment.sandboxId)?.socketPath as string
    const agent = agentAt(socketPath)
    return execute(
      { id: assignment.sandboxId, agent, assignment: { ...assignment, user } },
      { command },
      { signal: AbortSignal.timeout(60_000), [Symbol.dispose]: () => {} },
    )
  }

  test('a sandbox of an image with only busybox starts; `sh` runs commands as root or as a numeric user', async () => {
    const config = await bring('busybox', busyboxFiles())
    assert.deepEqual([config.user, config.workdir], ['root', '/'])
    const assignment = await host.started({ image: 'busybox', user: config.user })
    const asRoot = await run(
      assignment,
      'id -u; pwd; hostname; cat /etc/hosts | grep -c localhost; touch /file && ls /file',
      'root',
    )
    assert.deepEqual([asRoot.exitCode, asRoot.result], [0, `0\n/\n${assignment.sandboxId.slice(0, 12)}\n2\n/file\n`])
    assert.deepEqual(await run(assignment, 'id -u; id -g; touch /file2', '1234'), {
      exitCode: 1,
      result: '1234\n0\ntouch: /file2: Permission denied\n',
    })
    await host.host.stop({ ...assignment, target: 'stopped' })
    await host.host.start(assignment)
    assert.equal((await run(assignment, 'ls /file', 'root')).result, '/file\n')
  })

  test('if an image has USER name:group, commands have only that group; file capabilities give no rights', async () => {
    const files = [
      ...busyboxFiles(),
      { path: 'etc', type: '5' },
      { path: 'etc/passwd', content: 'app:x:1000:1000::/:/bin/sh\n' },
      { path: 'etc/group', content: 'app:x:1000:\nteam:x:70:\nmore:x:71:app\n' },
      {
        path: 'bin/ping',
        content: readFileSync(busybox),
        mode: 0o755,
        attributes: { 'security.capability': mayUseRawSockets },
      },
    ] satisfies TarEntry[]
    const config = await bring('users', files, { User: 'app:team' })
    assert.equal(config.user, 'app:team')
    const assignment = await host.started({ image: 'users', user: config.user })
    const found = execFileSync('getcap', ['-n', join(host.directory, 'users/bin/ping')], { encoding: 'utf8' })
    assert.match(found, /cap_net_raw=ep \[rootid=165536\]/)
    const command = 'id -u; id -g; id -G; ping 2>&1 | head -1; grep CapEff /proc/self/status'
    const own = '0000000000000000'
    for (const [user, ids] of [
      ['app:team', '1000\n70\n70'],
      ['app', '1000\n1000\n1000 71'],
      ['app:72', '1000\n72\n72'],
      ['5000:team', '5000\n70\n70'],
      ['5000', '5000\n0\n0'],
    ] as const) {
      const { result } = await run(assignment, command, user)
      assert.match(result, new RegExp(`^${ids}\nBusyBox .*\nCapEff:\t${own}\n$`), user)
    }
    await assert.rejects(run(assignment, 'id', 'app:unknown'), { message: /"app:unknown" does not exist in this/ })
  })

  test('a sandbox of an image without a shell starts; its commands fail, and the error names bash and sh', async () => {
    await bring('empty', [{ path: 'nothing', content: '' }])
    const assignment = await host.started({ image: 'empty', user: 'root' })
    assert.deepEqual(await run(assignment, 'true', 'root'), {
      exitCode: -1,
      result: 'This sandbox has neither bash nor sh.\n',
    })
  })
})
