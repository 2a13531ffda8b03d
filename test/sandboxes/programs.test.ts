// An attacker who takes over one of the unprivileged programs of a server must get only the files and connections of that program.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { users } from '#src/kit/confined.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

type Running = { name: string; pid: number }

const statusOf = (pid: number) => readFileSync(`/proc/${pid}/status`, 'utf8')
const uidOf = (pid: number) => {
  try {
    return Number(/^Uid:\s+(\d+)/m.exec(statusOf(pid))?.[1])
  } catch {
    return undefined // If the process has ended, it has no uid.
  }
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** Runs a script in the mount and network namespaces of a program of the server, as the user `uid`. */
const runInside = ({ pid }: Running, uid: number, script: string): string => {
  const there = ['nsenter', '-t', `${pid}`, '--mount', '--net', '--root', '--wd=/', '--']
  const asIt = [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${uid}`,
    '--clear-groups',
    '--no-new-privs',
    '--bounding-set=-all',
  ]
  const [file = '', ...args] = [...there, ...(uid === 0 ? [] : asIt), 'sh', '-c', `exec 2>&1; ${script}`]
  return spawnSync(file, args, { encoding: 'utf8', timeout: 20_000 }).stdout.trim()
}

suite('the programs of a running server', () => {
  let alcove: Platform
  let box: Box
  let running: Running[]

  before(async () => {
    alcove = await platform()
    // The runner starts the resolver program only for a sandbox with a domain list, so make such a sandbox.
    box = await createBox(alcove, { domainAllowList: 'example.com' })
    const names = ['postgres', 'control', 'gate', 'ssh-gateway'] as const
    running = await Promise.all(names.map(async (name) => ({ name, pid: await alcove.pidOf(name) })))
    const runner = await alcove.pidOf('runner')
    const findResolver = () => childrenOf(runner).find((pid) => uidOf(pid) === users.resolver)
    await until('the resolver runs', () => findResolver() !== undefined)
    running.push({ name: 'resolver', pid: findResolver()! })
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const uid = ({ name }: Running) => users[name as keyof typeof users]

  test('each program of a server has its own user, a seccomp filter, and no way to get capabilities', () => {
    assert.equal(new Set(Object.values(users)).size, Object.keys(users).length)
    for (const each of running) {
      const status = statusOf(each.pid)
      assert.match(status, new RegExp(`^Uid:\\t${uid(each)}(\\t${uid(each)}){3}$`, 'm'), each.name)
      assert.match(status, new RegExp(`^Gid:\\t${uid(each)}(\\t${uid(each)}){3}$`, 'm'), each.name)
      assert.match(status, /^Groups:\s*$/m, each.name)
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        assert.match(status, new RegExp(`^${set}:\\t0+$`, 'm'), `${each.name} ${set}`)
      assert.match(status, /^NoNewPrivs:\t1$/m, each.name)
      assert.match(status, /^Seccomp:\t2$/m, each.name)
    }
  })

  test('no unprivileged server program sees secrets, logs, disks of sandboxes, home directories or cgroups', () => {
    const { secrets, log, runner, stateFile } = dataDirectoryAt(alcove.data)
    const places = [secrets, log, runner, stateFile, '/root', '/home', '/var/lib', '/var/log', '/sys', '/mnt', '/boot']
    for (const each of running) {
      const found = runInside(
        each,
        uid(each),
        `for path in ${places.join(' ')}; do test ! -e $path || echo $path; done`,
      )
      assert.equal(found, '', each.name)
      // Every program must see `/usr/bin`. This shows that `runInside` works: otherwise the check of `places` would find nothing
      // and pass.
      assert.equal(runInside(each, uid(each), 'test -e /usr/bin && id -u'), `${uid(each)}`, each.name)
    }
  })

  test('a program of a server can connect only to those sockets of other server programs that it needs', () => {
    const sockets = 'find / -type s 2>/dev/null'
    const seen = (name: string) => {
      const program = running.find((each) => each.name === name)!
      return [...new Set(runInside(program, 0, sockets).split('\n'))].filter((path) => path !== '')
    }
    const { postgresSocket, runnerSocket, agentSockets } = dataDirectoryAt(alcove.data)
    assert.deepEqual(seen('control'), [join(postgresSocket, '.s.PGSQL.5432')])
    assert.deepEqual(seen('postgres'), [join(postgresSocket, '.s.PGSQL.5432')])
    assert.deepEqual(seen('resolver'), [])
    assert.deepEqual(seen('ssh-gateway'), [])
    // Every gate may see the directory in which the runners of all servers on this host have their sockets.
    const ofRunners = seen('gate')
    assert.ok(ofRunners.includes(runnerSocket), ofRunners.join(' '))
    const places = [dirname(runnerSocket), dirname(agentSockets)]
    assert.deepEqual(
      ofRunners.filter((path) => !places.some((place) => path.startsWith(`${place}/`))),
      [],
    )
    const gate = running.find((each) => each.name === 'gate')!
    assert.match(runInside(gate, uid(gate), `ls ${agentSockets} || echo no`), /no$/)
  })

  test('a program of the server can neither see nor signal the processes of the server’s other programs', () => {
    for (const each of running) {
      const others = runInside(each, uid(each), 'ls /proc')
        .split('\n')
        .filter((name) => /^\d+$/.test(name))
      assert.deepEqual(others, [`${each.pid}`], each.name)
      const targets = [...running.filter((other) => other !== each).map(({ pid }) => pid), process.pid]
      const alive = runInside(each, uid(each), `for pid in ${targets.join(' ')}; do kill -0 $pid && echo $pid; done`)
      assert.doesNotMatch(alive, /^\d+$/m, each.name)
    }
  })

  test('PostgreSQL’s only network interface is lo, and unprivileged programs cannot change the server’s code', () => {
    const postgres = running.find(({ name }) => name === 'postgres')!
    const interfaces = readFileSync(`/proc/${postgres.pid}/net/dev`, 'utf8').match(/^\s*\w+:/gm)
    assert.deepEqual(
      interfaces?.map((name) => name.trim()),
      ['lo:'],
    )
    for (const name of ['control', 'gate', 'ssh-gateway', 'resolver']) {
      const program = running.find((each) => each.name === name)!
      const code = join(import.meta.dirname, '../../src')
      assert.match(runInside(program, 0, `touch ${code}/new`), /Read-only file system/, name)
    }
  })

  test('after a `code-run` call with TypeScript, no process of the compiler is left on the host', async () => {
    const { body } = await box.toolbox('POST', '/process/code-run', {
      code: 'const four: number = 2 + 2\nconsole.log(four)',
      language: 'typescript',
    })
    assert.deepEqual([body['exitCode'], body['result']], [0, '4\n'])
    const left = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && uidOf(Number(pid)) === users.compiler)
    assert.deepEqual(left, [])
  })
})
