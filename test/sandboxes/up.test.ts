// Tests `./alcove up` as an operator uses it: started twice, on a used port, stopped, and started again. survival.test.ts tests
// kills of `up`.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { isAlive } from '#src/kit/process-identity.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { findUpState } from '#src/up/state-file.ts'
import { freePorts } from './free-ports.ts'
import { type Platform, platform } from './harness.ts'

const launcher = resolve(import.meta.dirname, '../../alcove')

const alcove = (...args: string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((answer) => {
    const child = execFile(launcher, args, { timeout: 120_000 }, (_error, stdout, stderr) =>
      answer({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })

suite('alcove up', () => {
  let server: Platform
  before(async () => {
    server = await platform({ own: true, image: 'small' })
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
  })
  const programs = () => findUpState(dataDirectoryAt(server.data).stateFile)?.programs ?? []

  test('a second `up` on one data directory is refused, and names the process of the first `up`', async () => {
    const { code, stderr } = await alcove('up', '--data', server.data, '--port', String(await freePorts(3)))
    const first = findUpState(dataDirectoryAt(server.data).stateFile)
    assert.equal(code, 1)
    assert.match(stderr, new RegExp(`already in use by process ${first?.pid}\\b`))
    assert.equal((await server.api('GET', '/sandbox')).status, 200)
  })

  for (const [what, offset] of [
    ['the port itself', 0],
    ['the port above, which the gate needs', 1],
    ['the port above that, which the SSH gateway needs', 2],
  ] as const) {
    test(`alcove up refuses to start if the port of ${what} is in use, and names the port`, async () => {
      const port = await freePorts(3)
      const other: Server = createServer()
      await new Promise<void>((listening) => other.listen(port + offset, '127.0.0.1', listening))
      const data = mkdtempSync(join(tmpdir(), 'alcove-test-'))
      try {
        const { code, stderr } = await alcove('up', '--data', data, '--port', String(port))
        assert.equal(code, 1)
        assert.match(stderr, new RegExp(`port ${port + offset} on 127\\.0\\.0\\.1 is in use`))
      } finally {
        other.close()
        await alcove('purge', '--yes', '--data', data)
        rmSync(data, { recursive: true, force: true })
      }
    })
  }

  test('`alcove key` prints only the admin key, and the API accepts the printed key', async () => {
    const { code, stdout } = await alcove('key', '--data', server.data)
    assert.deepEqual([code, stdout], [0, `${server.key}\n`])
    const reply = await fetch(`${server.url}/api/api-keys/current`, {
      headers: { authorization: `Bearer ${stdout.trim()}` },
    })
    assert.equal(reply.status, 200)
  })

  test('`alcove status` shows that every program is ready, and how many sandboxes are in each state', async () => {
    const { code, stdout } = await alcove('status', '--json', '--data', server.data)
    const status = JSON.parse(stdout) as {
      programs: { name: string; state: string; alive: boolean }[]
      sandboxes: object
    }
    assert.equal(code, 0)
    assert.deepEqual(
      status.programs.map(({ name, state, alive }) => [name, state, alive]),
      ['postgres', 'control', 'gate', 'runner', 'ssh-gateway'].map((name) => [name, 'ready', true]),
    )
    assert.deepEqual(status.sandboxes, {})
  })

  test('`alcove doctor` reports kernel, cgroups, user namespaces, overlay, crun and KVM of this host', async () => {
    const { stdout } = await alcove('doctor', '--data', server.data)
    for (const word of [/kernel/i, /cgroup/i, /user namespaces/i, /overlay/i, /crun/i, /kvm/i])
      assert.match(stdout, word)
  })

  test('of the programs that `up` starts, only the runner is root, and no other program has a capability', async () => {
    const users = programs().map(({ name, pid }) => {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      return [name, Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]), /^CapEff:\s+0+$/m.test(status)]
    })
    assert.deepEqual(users, [
      ['postgres', 61001, true],
      ['control', 61002, true],
      ['gate', 61003, true],
      ['runner', 0, false],
      ['ssh-gateway', 61008, true],
    ])
  })

  test('`alcove down` stops all programs, and the next `up` has the same data and the same admin key', async () => {
    const running = programs()
    const { code } = await alcove('down', '--data', server.data)
    assert.equal(code, 0)
    assert.deepEqual(
      running.filter((program) => isAlive(program)).map(({ name }) => name),
      [],
    )
    assert.equal((await alcove('status', '--data', server.data)).code, 3)
    assert.match((await alcove('down', '--data', server.data)).stdout, /No server or runner is running/)
    await server.start()
    assert.equal((await server.api('GET', '/sandbox')).status, 200)
  })
})
