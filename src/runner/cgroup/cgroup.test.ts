// Tests real cgroups of the version that this machine uses, and v2 too if it is mounted beside v1. Needs root.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { cgroupAt, listCgroups, MemoryInUse, weightOf } from './cgroup.ts'
import { parseCounters } from './files.ts'
import { type CgroupLayout, readLayout } from './layout.ts'

const layouts = (): CgroupLayout[] => {
  const own = readLayout()
  const unified = own.version === 1 ? own.unified : undefined
  return unified === undefined ? [own] : [own, { version: 2, root: unified }]
}

/** A cgroup like those that the runtime makes: it exists in every hierarchy and contains a process. */
class Occupied {
  readonly path = `/alcove-test-${randomBytes(3).toString('hex')}`
  readonly process: ChildProcess
  readonly directories: string[]
  readonly layout: CgroupLayout

  constructor(layout: CgroupLayout, ...argv: [string, ...string[]]) {
    this.layout = layout
    this.process = spawn(argv[0], argv.slice(1), { stdio: 'ignore' })
    const roots = layout.version === 2 ? [layout.root] : layout.allRoots
    this.directories = roots.map((root) => join(root, this.path))
    for (const directory of this.directories) {
      mkdirSync(directory)
      const cpus = join(directory, 'cpuset.cpus')
      for (const name of ['cpuset.cpus', 'cpuset.mems'])
        if (layout.version === 1 && existsSync(cpus))
          writeFileSync(join(directory, name), readFileSync(join(directory, '..', name)))
      writeFileSync(join(directory, 'cgroup.procs'), String(this.process.pid))
    }
  }

  get cgroup() {
    return cgroupAt(this.layout, this.path)
  }

  async [Symbol.asyncDispose]() {
    this.process.kill('SIGKILL')
    await this.cgroup.kill()
    await this.cgroup.remove()
  }
}

for (const layout of needsRoot ? [] : layouts())
  suite(`a cgroup of version ${layout.version}`, () => {
    test('`kill` ends all processes of a cgroup, even if frozen; a second `kill` or `remove` does no harm', async () => {
      await using occupied = new Occupied(layout, 'sleep', '1000')
      const { cgroup, process: child } = occupied
      const exited = once(child, 'exit')
      assert.deepEqual(await cgroup.pids(), [child.pid])
      await cgroup.freeze()
      await cgroup.kill()
      assert.deepEqual(await exited, [null, 'SIGKILL'])
      assert.deepEqual(await cgroup.pids(), [])
      await cgroup.remove()
      assert.deepEqual(
        occupied.directories.filter((directory) => existsSync(directory)),
        [],
      )
      await cgroup.kill()
      await cgroup.remove()
      assert.equal(await cgroup.usage(), undefined)
      assert.equal(await cgroup.outOfMemoryKills(), 0)
    })

    test('no process runs in a frozen cgroup; after a thaw its processes continue', async () => {
      await using occupied = new Occupied(layout, 'sh', '-c', 'while :; do :; done')
      const { cgroup, process: child } = occupied
      const ticks = () => readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(' ').slice(13, 15).join()
      assert.equal(await cgroup.isFrozen(), false)
      await cgroup.freeze()
      assert.equal(await cgroup.isFrozen(), true)
      const before = ticks()
      for (let round = 0; round < 50; round++) await new Promise(setImmediate)
      assert.equal(ticks(), before)
      await cgroup.thaw()
      while (ticks() === before) await new Promise(setImmediate)
    })

    test('a cgroup that exists in several v1 hierarchies is listed once', async () => {
      await using occupied = new Occupied(layout, 'sleep', '1000')
      const names = await listCgroups(layout, '/')
      assert.equal(names.filter((name) => `/${name}` === occupied.path).length, 1)
      assert.deepEqual(await listCgroups(layout, '/alcove-absent'), [])
    })
  })

suite('limits of a cgroup while its processes run', {
  skip: needsRoot || (readLayout().version === 2 && 'the host has cgroup v2 alone'),
}, () => {
  test('memory and CPU limits of a cgroup can be raised and lowered while its processes run', async () => {
    const layout = readLayout()
    assert.ok(layout.version === 1)
    await using occupied = new Occupied(layout, 'sleep', '1000')
    const { cgroup, path } = occupied
    const read = (root: string, name: string) => Number(readFileSync(join(root, path, name), 'utf8'))
    for (const compute of [
      { cpu: 1, memoryGiB: 1 },
      { cpu: 0.5, memoryGiB: 2 },
      { cpu: 2, memoryGiB: 0.5 },
    ]) {
      await cgroup.limit(compute)
      assert.equal(read(layout.roots.memory, 'memory.limit_in_bytes'), compute.memoryGiB * 1024 ** 3)
      assert.equal(read(layout.roots.memory, 'memory.kmem.tcp.limit_in_bytes'), (compute.memoryGiB * 1024 ** 3) / 8)
      assert.equal(read(layout.roots.cpu, 'cpu.cfs_quota_us'), compute.cpu * 100_000)
    }
    assert.ok(((await cgroup.usage())?.processes ?? 0) >= 1)
  })
})

suite('memory on cgroup v2', () => {
  test('a memory limit below a cgroup’s memory in use is refused, and none of the cgroup’s limits change', async () => {
    // The test uses plain files, because the kernel of the test machine may have no memory controller for v2.
    const root = mkdtempSync(join(tmpdir(), 'alcove-cgroup-'))
    try {
      const files = { current: '2147483648', max: '4294967296', high: 'max' }
      for (const [name, value] of Object.entries(files)) writeFileSync(join(root, `memory.${name}`), value)
      for (const name of ['cpu.max', 'cpu.weight', 'pids.max']) writeFileSync(join(root, name), 'before')
      const cgroup = cgroupAt({ version: 2, root }, '/')
      await assert.rejects(
        cgroup.limit({ cpu: 1, memoryGiB: 1 }),
        (error) => error instanceof MemoryInUse && error.usedBytes === 2 * 1024 ** 3,
      )
      // In a plain file, the short value `max` leaves the end of a longer old value. `read` removes this rest.
      const read = (name: string) => readFileSync(join(root, name), 'utf8').replace(/^max.*/, 'max')
      assert.deepEqual(['memory.max', 'memory.high', 'cpu.max', 'cpu.weight'].map(read), [
        '4294967296',
        'max',
        'before',
        'before',
      ])
      await cgroup.limit({ cpu: 1, memoryGiB: 3 })
      assert.deepEqual(['memory.max', 'cpu.max'].map(read), [String(3 * 1024 ** 3), '100000 100000'])
    } finally {
      rmSync(root, { recursive: true, force: true })
    }
  })
})

suite('parsing of cgroup files', () => {
  test('`parseCounters` returns the counters of a cgroup file by their names', () => {
    assert.deepEqual(
      [...parseCounters('oom 1\noom_kill 22\n\n')],
      [
        ['oom', 1],
        ['oom_kill', 22],
      ],
    )
  })

  test('CPU shares of cgroup v1 are converted to CPU weights of v2 over the whole range', () => {
    assert.deepEqual([2, 1024, 262144].map(weightOf), [1, 40, 10000])
  })
})
