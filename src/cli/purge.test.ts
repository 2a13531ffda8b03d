// Tests what `alcove purge` removes and what it leaves. No server runs.
// The tests only make data directories and networks like those of a server.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, suite, type TestContext, test } from 'node:test'
import { runDirectoryOf } from '#src/kit/instance.ts'
import { silentLog } from '#src/kit/log.ts'
import { rangeText } from '#src/runner/network/names.ts'
import { openNetworkPool } from '#src/runner/network/pool.ts'
import { giveUpRange } from '#src/runner/network/range.ts'
import { removeNetwork } from '#src/runner/network/remove.ts'
import { markOf, prepareDataDirectory } from '#src/up/data-directory.ts'

const program = resolve(import.meta.dirname, '../../bin/alcove.ts')
const purge = (path: string) => {
  const words = [program, 'purge', '--yes', '--data', path]
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', timeout: 60_000 })
  return { status, text: stdout, steps: stderr }
}

/** Returns all address ranges in 10.0.0.0/8 that servers on this host have reserved with a blackhole route. */
const claimed = () =>
  spawnSync('ip', ['-4', 'route', 'show', 'type', 'blackhole'], { encoding: 'utf8' })
    .stdout.split('\n')
    .map((line) => line.split(' ')[1])

suite('alcove purge', { skip: process.getuid?.() === 0 ? false : 'it needs root' }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-purge-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))

  test('`alcove purge` refuses a directory that is not Alcove’s, and leaves it unchanged', () => {
    const path = join(scratch, 'theirs')
    for (const name of ['run', 'precious', 'log', 'secrets']) mkdirSync(join(path, name), { recursive: true })
    assert.deepEqual(purge(path), { status: 0, text: `${path} contains nothing of Alcove.\n`, steps: '' })
    assert.deepEqual(readdirSync(path), ['log', 'precious', 'run', 'secrets'])
  })

  test('`alcove purge` removes a data directory and prints each step; a second purge finds nothing', () => {
    const { path, runtime } = prepareDataDirectory(join(scratch, 'ours'))
    const { status, text, steps } = purge(path)
    assert.deepEqual([status, text], [0, `Removed ${path} and everything it had on this host.\n`])
    assert.deepEqual(steps.trim().split('\n'), [
      'Ending programs that still run …',
      'Removing keys, the database and logs …',
      'Ending sandboxes, and removing their networks and mounts …',
      `Removing the data in ${path} …`,
    ])
    assert.deepEqual([existsSync(path), existsSync(runtime)], [false, false])
    assert.deepEqual(purge(path), { status: 0, text: `${path} contains nothing of Alcove.\n`, steps: '' })
  })

  test('`alcove purge` leaves files in a data directory that Alcove did not make, and says that it left them', () => {
    const { path } = prepareDataDirectory(join(scratch, 'shared'))
    mkdirSync(join(path, 'images'))
    const { status, text } = purge(path)
    assert.equal(status, 0)
    assert.match(text, /and stay:\n {2}images\n$/)
    assert.deepEqual(readdirSync(path), ['images'])
    assert.match(purge(path).text, /contains nothing of Alcove/)
  })

  test('`alcove purge` frees the address ranges of the purged server, and not those of another server', async (t) => {
    const ours = prepareDataDirectory(join(scratch, 'networked'))
    const theirs = prepareDataDirectory(join(scratch, 'neighbour'))
    const takeRange = async ({ instance }: { instance: string }) => {
      const pool = await openNetworkPool({ instance, log: silentLog(), spare: 1 })
      await pool.close()
      const { range } = JSON.parse(readFileSync(join(runDirectoryOf(instance), 'network.json'), 'utf8'))
      t.after(async () => {
        await removeNetwork(instance)
        if (claimed().includes(rangeText(range))) await giveUpRange(range)
      })
      return rangeText(range)
    }
    const [our, their] = [await takeRange(ours), await takeRange(theirs)]
    const held = () => [our, their].map((range) => claimed().includes(range))
    assert.deepEqual(held(), [true, true])
    assert.equal(purge(ours.path).status, 0)
    assert.deepEqual(held(), [false, true])
    assert.equal(purge(theirs.path).status, 0)
    assert.deepEqual(held(), [false, false])
  })

  /** Makes a storage pool as a runner does: a file system in a file, on a loop device. */
  const makePool = (runner: string) => {
    const [file, at] = [join(runner, 'pool.img'), join(runner, 'pool')]
    mkdirSync(at)
    const sh = (command: string, ...args: string[]) => {
      const { status, stderr } = spawnSync(command, args, { encoding: 'utf8' })
      assert.equal(status, 0, `${command} ${args.join(' ')}: ${stderr}`)
    }
    sh('truncate', '-s', '16M', file)
    sh('mkfs.ext4', '-q', file)
    sh('mount', '-o', 'loop', file, at)
    writeFileSync(join(at, 'disk'), 'of a sandbox')
  }

  /** Starts a process in a mount namespace of its own, like a container. What is mounted now stays mounted in that namespace. */
  const holdMounts = async (t: TestContext) => {
    const script = 'echo held; exec sleep 4713'
    const holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const letGo = async () => {
      if (holder.exitCode !== null || holder.signalCode !== null) return
      const ended = once(holder, 'exit')
      holder.kill('SIGKILL')
      await ended
    }
    t.after(letGo)
    await once(holder.stdout, 'data')
    return { pid: holder.pid, letGo }
  }

  test('if a process uses the pool, `alcove purge` names that process, and removes everything but the pool', async (t) => {
    const { path, secrets, postgres, runner, runtime } = prepareDataDirectory(join(scratch, 'held'))
    writeFileSync(join(secrets, 'admin.key'), 'dtn_secret')
    writeFileSync(join(postgres, 'row'), 'of the database')
    makePool(runner)
    const holder = await holdMounts(t)
    const first = purge(path)
    assert.equal(first.status, 1)
    assert.match(first.steps, new RegExp(`loop device /dev/loop\\d+, held by process ${holder.pid} \\(sleep 4713\\)`))
    assert.deepEqual(
      [secrets, postgres, runner, join(path, 'log'), runtime].filter((each) => existsSync(each)),
      [],
    )
    assert.ok(existsSync(markOf(path)), 'the mark tells the second run what is here')
    await holder.letGo()
    const second = purge(path)
    assert.deepEqual([second.status, existsSync(path)], [0, false], second.steps)
    const loops = spawnSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'], { encoding: 'utf8' }).stdout
    assert.ok(!loops.includes(path), loops)
  })

  test('if a step of `alcove purge` fails, the later steps still run', (t) => {
    const { path, secrets, log, postgres } = prepareDataDirectory(join(scratch, 'stubborn'))
    writeFileSync(join(secrets, 'admin.key'), 'dtn_secret')
    const fixed = join(log, 'control.log')
    writeFileSync(fixed, '')
    const mark = (flag: string) => spawnSync('chattr', [flag, fixed]).status
    if (mark('+i') !== 0) return t.skip('the file system has no immutable files')
    t.after(() => mark('-i'))
    const first = purge(path)
    assert.equal(first.status, 1)
    assert.match(first.steps, /log: .*Operation not permitted/s)
    assert.deepEqual([existsSync(secrets), existsSync(postgres), existsSync(fixed)], [false, false, true])
    mark('-i')
    assert.deepEqual([purge(path).status, existsSync(path)], [0, false])
  })

  test('`alcove purge` removes the files that an interrupted first start has left', () => {
    const path = join(scratch, 'begun')
    mkdirSync(path)
    writeFileSync(markOf(path), '')
    assert.equal(purge(path).status, 0)
    assert.equal(existsSync(path), false)
  })
})
