// Tests the launcher as a built program. Some tests need root.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { needsRoot } from '#test/needs-root.ts'
import { ownProcsFile, readLayout } from './cgroup/layout.ts'
import { expectStart, LaunchFailed, runSteps, serveCommands, step } from './launch.ts'
import { canMapOwners } from './overlay/owners.ts'
import { builtLauncher, cannotMapOwners } from './testing/test-host.ts'

const self = process.getuid?.() ?? 0

const launcherSuite = (kindOfProcess: string, open: (launcher: string) => Disposable | undefined) =>
  suite(`the launcher as ${kindOfProcess}`, () => {
    let directory: string
    let launcher: string
    let server: Disposable | undefined
    before(() => {
      directory = mkdtempSync(join(tmpdir(), 'alcove-launch-'))
      launcher = builtLauncher()
      server = open(launcher)
    })
    after(() => {
      server?.[Symbol.dispose]()
      rmSync(directory, { recursive: true, force: true })
    })

    const failsWith = (steps: Parameters<typeof runSteps>[1], message: RegExp) =>
      assert.rejects(runSteps(launcher, steps), (error) => error instanceof LaunchFailed && message.test(error.message))

    test('the launcher runs its steps in order, and can run the same steps again', async () => {
      const inner = join(directory, 'inner')
      const steps = [
        step.directory(inner, self, 0o750),
        step.file(join(inner, 'always'), self, 'one'),
        step.newFile(join(inner, 'once'), self, 'one'),
      ]
      await runSteps(launcher, steps)
      await runSteps(launcher, [
        ...steps,
        step.file(join(inner, 'always'), self, 'two'),
        step.newFile(join(inner, 'once'), self, 'two'),
      ])
      assert.equal(statSync(inner).mode & 0o777, 0o750)
      assert.equal(readFileSync(join(inner, 'always'), 'utf8'), 'two')
      assert.equal(readFileSync(join(inner, 'once'), 'utf8'), 'one')
    })

    test('the launcher’s step `file` replaces a file that differs in text, owner or mode, and no other file', async () => {
      const path = join(directory, 'text')
      const write = (text = 'one') => runSteps(launcher, [step.file(path, self, text)])
      const changedAt = () => statSync(path, { bigint: true }).ctimeNs
      await write()
      const before = changedAt()
      await write()
      assert.equal(changedAt(), before)
      const spoil: (() => void)[] = [
        () => writeFileSync(path, 'one and more'),
        () => writeFileSync(path, 'on'),
        () => chmodSync(path, 0o755),
        ...(self === 0 ? [() => chownSync(path, 7, 0), () => chownSync(path, 0, 7)] : []),
      ]
      for (const one of spoil) {
        one()
        await write()
        const { mode, uid, gid } = statSync(path)
        assert.deepEqual([readFileSync(path, 'utf8'), mode & 0o7777, uid, gid], ['one', 0o644, self, self])
      }
      const long = 'x'.repeat(10_000)
      await write(long)
      assert.equal(readFileSync(path, 'utf8'), long)
    })

    test('the launcher’s error contains the first step that fails and the reason; no later step runs', async () => {
      const after = join(directory, 'after')
      await failsWith(
        [step.directory(join(directory, 'no/such'), self, 0o700), step.directory(after, self, 0o700)],
        /^directory: No such file or directory \(.*no\/such\)$/,
      )
      assert.throws(() => statSync(after))
      await failsWith([step.listen(`/${'x'.repeat(200)}`, 0)], /^listen: the path of the socket is too long$/)
      await failsWith([['nonsense']], /^nonsense: no such step$/)
      await failsWith([['file', 'too few']], /^file: too few arguments$/)
      await failsWith([step.exec(['/no/such/program'])], /^exec: No such file or directory/)
    })

    test('the launcher’s step `sharedMemory` refuses a process that is not in a sandbox', async () => {
      await failsWith([step.sharedMemory(process.pid, 4096)], /^shm: this is no sandbox$/)
    })

    test('`bindMapped` mounts files with each owner mapped by the id map; owners not in the map become nobody', {
      skip: needsRoot,
    }, async (t) => {
      const at = (name: string) => join(directory, name)
      const [from, to, note] = [at('from'), at('to'), at('owners')]
      await runSteps(
        launcher,
        [from, to, at('empty')].map((path) => step.directory(path, 0, 0o755)),
      )
      const trial = { launcher, log: silentLog(), directories: [from], mountPoints: { image: to, own: at('empty') } }
      if (!(await canMapOwners(trial))) return t.skip(cannotMapOwners)
      await runSteps(launcher, [
        step.file(join(from, 'theirs'), 1007, 'x'),
        step.file(join(from, 'root'), 0, 'x'),
        step.file(join(from, 'nobody'), 7, 'x'),
        step.privateMounts(),
        step.ids('0 0 1\n1000 5000 10\n'),
        step.bindMapped(from, to),
        step.exec(['sh', '-c', `cd ${to}; stat -c %u:%g theirs root nobody > ${note}`]),
      ])
      assert.deepEqual(readFileSync(note, 'utf8').split('\n'), ['5007:5007', '0:0', '65534:65534', ''])
      await failsWith([step.bindMapped(from, to)], /^bind-mapped: ids come first$/)
      await failsWith([step.ids('nonsense')], /^ids: Invalid argument/)
    })

    test('the launcher’s step `file` never writes to the target of a symbolic link', async () => {
      const link = join(directory, 'link')
      const target = join(directory, 'target')
      await runSteps(launcher, [step.exec(['ln', '-s', target, link])])
      await failsWith([step.file(link, self, 'x')], /^file: Too many levels of symbolic links/)
      assert.throws(() => statSync(target))
    })

    test('the launcher raises its soft limits of pending signals and message queues to the hard limits', async () => {
      const note = join(directory, 'limits')
      const become = ['exec', 'sh', '-c', `cat /proc/self/limits > ${note}`]
      await runCommand(['prlimit', '--sigpending=100:', '--msgqueue=1000:', launcher, ...become])
      for (const name of ['Max pending signals', 'Max msgqueue size']) {
        const [, soft, hard] = new RegExp(`${name} +(\\w+) +(\\w+)`).exec(readFileSync(note, 'utf8')) ?? []
        assert.ok(soft !== undefined && soft === hard, `${name}: ${soft} of ${hard}`)
      }
    })

    test('the launched program gets the listening socket as descriptor 3, and no other descriptor', async () => {
      const socket = join(directory, 'a.sock')
      const note = join(directory, 'pid')
      const running = runSteps(launcher, [
        step.listen(socket, 0),
        // The shell stops itself, so that its open descriptors can be counted. It has more open descriptors while it loads its
        // libraries.
        step.exec(['sh', '-c', `echo $$ > ${note}; kill -STOP $$`]),
      ])
      const ended = assert.rejects(running, LaunchFailed)
      const read = (path: string) => {
        try {
          return readFileSync(path, 'utf8').trim()
        } catch {
          return ''
        }
      }
      while (!/\) T /.test(read(`/proc/${read(note)}/stat`))) await new Promise(setImmediate)
      const descriptors = `/proc/${read(note)}/fd`
      const open = readdirSync(descriptors).map((fd) => `${fd} ${readlinkSync(join(descriptors, fd))}`)
      // No process accepts this connection, so the connection waits in the queue of the socket.
      const connection = createConnection(socket)
      await once(connection, 'connect')
      connection.destroy()
      process.kill(Number(read(note)), 'SIGKILL')
      await ended
      assert.deepEqual(
        open.map((descriptor) => descriptor.replace(/\[\d+\]/, '')),
        ['0 /dev/null', '1 /dev/null', '2 /dev/null', '3 socket:'],
      )
    })
  })

launcherSuite('a new process for each list of steps', () => undefined)
launcherSuite('a permanent process', (launcher) => serveCommands(launcher, undefined))

suite('commands that a permanent launcher process starts (`serveCommands`)', () => {
  let server: Disposable
  before(() => {
    server = serveCommands(builtLauncher(), ownProcsFile(readLayout()))
  })
  after(() => server[Symbol.dispose]())

  const children = (pid: number | 'self') => {
    const tasks = readdirSync(`/proc/${pid}/task`)
    const lists = tasks.map((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim())
    return lists.flatMap((list) => (list === '' ? [] : list.split(' ').map(Number)))
  }
  const nameOf = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  const serverPid = () => children('self').find((pid) => nameOf(pid) === 'launch') as number

  test('`runCommand` passes input, returns the output, and fails with exit code and standard error', async () => {
    const much = 'x'.repeat(300_000)
    assert.equal(await runCommand(['cat'], { input: much }), much)
    assert.equal(await runCommand(['sh', '-c', 'echo "$1"; cat', 'sh', 'a b\n']), 'a b\n\n')
    await assert.rejects(
      runCommand(['sh', '-c', 'echo out; echo why >&2; exit 3']),
      (error) => error instanceof CommandFailed && error.exitCode === 3 && error.stderr === 'why\n',
    )
    await assert.rejects(runCommand(['no-such-program']), /no-such-program: No such file or directory/)
    await assert.rejects(runCommand(['sh', '-c', 'kill -TERM $$']), /ended by SIGTERM/)
  })

  test('`runCommand` kills a command that exceeds its timeout', async () => {
    await assert.rejects(runCommand(['sleep', '1000'], { timeoutMs: 1000 }), /took longer than 1000 ms/)
  })

  test('of 400 concurrent commands, the launcher runs at most 256 at a time, and all 400 finish', async () => {
    const asked = Array.from({ length: 400 }, (_, index) => runCommand(['echo', String(index)]))
    assert.deepEqual(
      await Promise.all(asked),
      asked.map((_, index) => `${index}\n`),
    )
  })

  test('if the launcher process is killed, its commands fail, and the next command starts a new launcher', async () => {
    const steps = runSteps(builtLauncher(), [step.exec(['sleep', '1000'])])
    const told = assert.rejects(steps, LaunchFailed)
    const pid = serverPid()
    const sleeper = () => children(pid).find((child) => nameOf(child) === 'sleep')
    while (sleeper() === undefined) await new Promise(setImmediate)
    const sleeping = sleeper() as number
    process.kill(pid, 'SIGKILL')
    await told
    // It may take a moment until the new parent of the process has noticed that the process has ended.
    const isThere = () => existsSync(`/proc/${sleeping}/exe`) && nameOf(sleeping) === 'sleep'
    while (isThere()) await new Promise(setImmediate)
    assert.equal(await runCommand(['echo', 'again']), 'again\n')
    assert.notEqual(serverPid(), pid)
  })
})

suite('preparing the launcher for a sandbox start (`expectStart`)', () => {
  test('`expectStart` makes the launcher’s helper move itself into the runner’s cgroup; commands still run', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-launch-'))
    const procs = join(directory, 'procs')
    writeFileSync(procs, '')
    using _server = serveCommands(builtLauncher(), procs)
    assert.equal(await runCommand(['cat', procs]), '', 'no other command has it at work')
    expectStart()
    while (readFileSync(procs, 'utf8') === '') await new Promise(setImmediate)
    assert.match(readFileSync(procs, 'utf8'), /^0+$/)
    assert.equal(await runCommand(['echo', 'asked']), 'asked\n')
    rmSync(directory, { recursive: true })
  })
})
