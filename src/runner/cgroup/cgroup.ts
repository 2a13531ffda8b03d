// The cgroup of a sandbox, for cgroup v1 and v2. The runtime creates the cgroup with its limits. Later the runner writes limits to
// the cgroup's files, which is much faster than running a program.
import { existsSync } from 'node:fs'
import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { hasCode, parseCounters, parsePids, readIfThere, readNowIfThere, write } from './files.ts'
import type { CgroupLayout } from './layout.ts'
import type { MemoryUse } from './memory-use.ts'
import { type Compute, cpuLimit, memoryLimitBytes, pidsLimit, socketLimitBytes } from './sandbox-limits.ts'

type Usage = { cpuSeconds: number; memoryBytes: number; processes: number }

export interface Cgroup {
  pids(): Promise<number[]>
  /** Kills all processes in the cgroup. Resolves when all of them have ended. */
  kill(): Promise<void>
  /** Freezes all processes in the cgroup. Resolves when none of them runs any more. */
  freeze(): Promise<void>
  /** Lets the frozen processes of the cgroup continue. No error if the cgroup does not exist. */
  thaw(): Promise<void>
  /** Returns whether the cgroup is frozen. True also while a requested freeze is not complete yet. */
  isFrozen(): Promise<boolean>
  /**
   * Sets the limits that follow from a running sandbox's size. If the sandbox uses more memory than the new limit, throws
   * `MemoryInUse` and sets no limit.
   */
  limit(compute: Compute): Promise<void>
  /**
   * Returns the processors for the cgroup in the kernel's list format, such as `0-3,8`. Undefined if the cgroup may run on all
   * processors.
   */
  cpus(): Promise<string | undefined>
  useCpus(list: string): Promise<void>
  /** Returns how many of the cgroup's processes were killed when memory ran out in the cgroup, in all sandboxes, or on the host. */
  outOfMemoryKills(): number
  /** Returns how often the kernel has refused a new process or thread because the limit of processes was reached. */
  refusedProcesses(): number
  /** Returns the bytes of memory in use. Undefined if the cgroup does not exist any more. */
  memoryInUse(): number | undefined
  memoryUse(): MemoryUse | undefined
  /** Returns the bytes of kernel memory that are charged to the cgroup, with socket buffers. Undefined if the cgroup is gone. */
  kernelMemory(): number | undefined
  /** Returns the processor time of all processes of the cgroup so far. Undefined if the cgroup does not exist any more. */
  cpuSeconds(): number | undefined
  /** Returns the processor time that the kernel has used for system calls of the cgroup. Undefined if the cgroup is gone. */
  systemSeconds(): number | undefined
  /** Reads processor time, memory and number of processes together. Undefined if the cgroup is gone. */
  usage(): Promise<Usage | undefined>
  /** Removes the cgroup. No error if it does not exist. */
  remove(): Promise<void>
}

/** Thrown if a memory limit cannot be lowered because the sandbox uses more memory than the new limit. */
export class MemoryInUse extends Error {
  override readonly name = 'MemoryInUse'
  readonly usedBytes: number

  constructor(usedBytes: number) {
    super(`${usedBytes} bytes are in use`)
    this.usedBytes = usedBytes
  }
}

/**
 * Maximum number of checks whether the kernel is done with killing, freezing or removing. The kernel needs some milliseconds, or
 * longer if a process is writing to a disk.
 */
const settleAttempts = 400
const settleIntervalMs = 25

const until = async (isSo: () => Promise<boolean>, otherwise: string) => {
  for (let attempt = 0; attempt < settleAttempts; attempt++) {
    if (await isSo()) return
    // Pause only after ten checks, because the kernel has usually finished its work before the tenth.
    if (attempt >= 10) await delay(attempt < 20 ? 1 : settleIntervalMs)
  }
  throw new Error(otherwise)
}

const kill = (pid: number) => {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}

/** Removes a cgroup after its children. A sandbox cannot make child cgroups, but the runtime may have made some. */
const removeTree = async (directory: string) => {
  let children: string[]
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    children = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  for (const child of children) await removeTree(join(directory, child))
  const isGone = async () => {
    try {
      await rmdir(directory)
      return true
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return true
      if (hasCode(error, 'EBUSY')) return false
      throw error
    }
  }
  await until(isGone, `The cgroup ${directory} stays busy.`)
}

/** Returns the values of a cgroup's `memory.stat` that have equal names in v1 and v2. `of` returns a value by its name. */
const ofBothVersions = (of: (name: string) => number, used: number) => ({
  used,
  shared: of('shmem'),
  activeAnonymous: of('active_anon'),
  inactiveAnonymous: of('inactive_anon'),
  activeFile: of('active_file'),
  inactiveFile: of('inactive_file'),
  unevictable: of('unevictable'),
})

class CgroupV2 implements Cgroup {
  readonly #directory: string

  constructor(root: string, path: string) {
    this.#directory = join(root, path)
  }

  #file(name: string) {
    return join(this.#directory, name)
  }

  async pids() {
    return parsePids((await readIfThere(this.#file('cgroup.procs'))) ?? '')
  }

  async kill() {
    const isEmpty = async () => {
      const events = await readIfThere(this.#file('cgroup.events'))
      if (events === undefined || parseCounters(events).get('populated') === 0) return true
      try {
        await write(this.#file('cgroup.kill'), 1)
      } catch (error) {
        // Linux before 5.14 has no file `cgroup.kill`. There the processes are killed one by one.
        if (!hasCode(error, 'ENOENT')) throw error
        for (const pid of await this.pids()) kill(pid)
      }
      return false
    }
    await until(isEmpty, `Processes of ${this.#directory} cannot be killed.`)
  }

  async freeze() {
    await write(this.#file('cgroup.freeze'), 1)
    const isFrozen = async () =>
      parseCounters((await readIfThere(this.#file('cgroup.events'))) ?? '').get('frozen') === 1
    await until(isFrozen, `${this.#directory} does not freeze.`)
  }

  async thaw() {
    try {
      await write(this.#file('cgroup.freeze'), 0)
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENODEV')) throw error
    }
  }

  async isFrozen() {
    return (await readIfThere(this.#file('cgroup.freeze')))?.trim() === '1'
  }

  async limit(compute: Compute) {
    const { quota, period, shares } = cpuLimit(compute)
    const bytes = memoryLimitBytes(compute)
    await this.#makeFit(bytes)
    await write(this.#file('memory.max'), bytes)
    await write(this.#file('cpu.max'), `${quota} ${period}`)
    await write(this.#file('cpu.weight'), weightOf(shares))
    await write(this.#file('pids.max'), pidsLimit(compute))
  }

  /**
   * Makes the kernel free memory until at most `bytes` are in use, or throws `MemoryInUse`. `memory.high` only frees memory,
   * whereas a `memory.max` below the memory in use would kill processes.
   */
  async #makeFit(bytes: number) {
    const used = async () => Number((await readIfThere(this.#file('memory.current'))) ?? 0)
    if ((await used()) <= bytes) return
    await write(this.#file('memory.high'), bytes)
    try {
      const left = await used()
      if (left > bytes) throw new MemoryInUse(left)
    } finally {
      await write(this.#file('memory.high'), 'max')
    }
  }

  async cpus() {
    return (await readIfThere(this.#file('cpuset.cpus')))?.trim() || undefined
  }

  useCpus(list: string) {
    return write(this.#file('cpuset.cpus'), list)
  }

  outOfMemoryKills() {
    return parseCounters(readNowIfThere(this.#file('memory.events')) ?? '').get('oom_kill') ?? 0
  }

  refusedProcesses() {
    return parseCounters(readNowIfThere(this.#file('pids.events')) ?? '').get('max') ?? 0
  }

  memoryInUse() {
    const bytes = readNowIfThere(this.#file('memory.current'))
    return bytes === undefined ? undefined : Number(bytes)
  }

  memoryUse() {
    const stat = readNowIfThere(this.#file('memory.stat'))
    if (stat === undefined) return undefined
    const counters = parseCounters(stat)
    const of = (name: string) => counters.get(name) ?? 0
    return {
      ...ofBothVersions(of, this.memoryInUse() ?? 0),
      anonymous: of('anon'),
      cached: of('file'),
      mapped: of('file_mapped'),
      dirty: of('file_dirty'),
      writeback: of('file_writeback'),
      slabReclaimable: of('slab_reclaimable'),
      slabUnreclaimable: of('slab_unreclaimable'),
    }
  }

  kernelMemory() {
    const stat = readNowIfThere(this.#file('memory.stat'))
    if (stat === undefined) return undefined
    const counters = parseCounters(stat)
    const of = (name: string) => counters.get(name) ?? 0
    // Linux before 5.18 does not report `kernel`, which is the sum of all kernel memory. The parts of this sum are added instead.
    const kernel = counters.get('kernel') ?? of('slab') + of('kernel_stack') + of('pagetables') + of('percpu')
    return kernel + of('sock')
  }

  cpuSeconds() {
    const cpu = readNowIfThere(this.#file('cpu.stat'))
    return cpu === undefined ? undefined : (parseCounters(cpu).get('usage_usec') ?? 0) / 1e6
  }

  systemSeconds() {
    const cpu = readNowIfThere(this.#file('cpu.stat'))
    return cpu === undefined ? undefined : (parseCounters(cpu).get('system_usec') ?? 0) / 1e6
  }

  async usage() {
    const cpu = await readIfThere(this.#file('cpu.stat'))
    if (cpu === undefined) return undefined
    return {
      cpuSeconds: (parseCounters(cpu).get('usage_usec') ?? 0) / 1e6,
      memoryBytes: Number((await readIfThere(this.#file('memory.current'))) ?? 0),
      processes: Number((await readIfThere(this.#file('pids.current'))) ?? 0),
    }
  }

  remove() {
    return removeTree(this.#directory)
  }
}

/** Converts CPU shares of v1 (2 to 262144) to weights of v2 (1 to 10000), as OCI runtimes do. */
export const weightOf = (shares: number) => Math.round(1 + ((shares - 2) * 9999) / 262142)

class CgroupV1 implements Cgroup {
  readonly #layout: CgroupLayout & { version: 1 }
  readonly #path: string

  constructor(layout: CgroupLayout & { version: 1 }, path: string) {
    this.#layout = layout
    this.#path = path
  }

  #file(controller: keyof (CgroupLayout & { version: 1 })['roots'], name: string) {
    return join(this.#layout.roots[controller], this.#path, name)
  }

  async pids() {
    return parsePids((await readIfThere(this.#file('pids', 'cgroup.procs'))) ?? '')
  }

  async kill() {
    // Processes may fork faster than they are killed here. But one of them is the sandbox's PID 1. When PID 1 ends, the kernel
    // ends all others. A frozen process ends only when it runs again.
    const isEmpty = async () => {
      const pids = await this.pids()
      for (const pid of pids) kill(pid)
      if (pids.length > 0) await this.thaw()
      return pids.length === 0
    }
    await until(isEmpty, `Processes of ${this.#path} cannot be killed.`)
  }

  async freeze() {
    await write(this.#file('freezer', 'freezer.state'), 'FROZEN')
    const isFrozen = async () => (await readIfThere(this.#file('freezer', 'freezer.state')))?.trim() === 'FROZEN'
    await until(isFrozen, `${this.#path} does not freeze.`)
  }

  async thaw() {
    try {
      await write(this.#file('freezer', 'freezer.state'), 'THAWED')
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENODEV')) throw error
    }
  }

  async isFrozen() {
    // `FREEZING` means that a freeze was requested and is not complete yet.
    return /^F/.test((await readIfThere(this.#file('freezer', 'freezer.state'))) ?? '')
  }

  async limit(compute: Compute) {
    await this.#limitMemory(memoryLimitBytes(compute))
    await this.#limitSockets(socketLimitBytes(compute))
    const { quota, period, shares } = cpuLimit(compute)
    await write(this.#file('cpu', 'cpu.cfs_period_us'), period)
    await write(this.#file('cpu', 'cpu.cfs_quota_us'), quota)
    await write(this.#file('cpu', 'cpu.shares'), shares)
    await write(this.#file('pids', 'pids.max'), pidsLimit(compute))
  }

  async #limitMemory(bytes: number) {
    const memory = this.#file('memory', 'memory.limit_in_bytes')
    const withSwap = this.#file('memory', 'memory.memsw.limit_in_bytes')
    const current = Number(await readIfThere(memory))
    const countsSwap = (await readIfThere(withSwap)) !== undefined
    // The memory limit must never exceed the limit of memory and swap together. So the limit of memory and swap is raised first,
    // and lowered last.
    if (countsSwap && bytes > current) await write(withSwap, bytes)
    try {
      await write(memory, bytes)
      if (countsSwap && bytes <= current) await write(withSwap, bytes)
    } catch (error) {
      if (!hasCode(error, 'EBUSY')) throw error
      await write(memory, current)
      const used = await readIfThere(this.#file('memory', 'memory.usage_in_bytes'))
      throw new MemoryInUse(Number(used ?? 0))
    }
  }

  async #limitSockets(bytes: number) {
    try {
      await write(this.#file('memory', 'memory.kmem.tcp.limit_in_bytes'), bytes)
    } catch (error) {
      // EBUSY: the socket buffers already use more than the new limit, so their earlier limit stays. ENOENT: this kernel cannot
      // limit socket buffers.
      if (!hasCode(error, 'EBUSY', 'ENOENT')) throw error
    }
  }

  #cpuset() {
    const root = this.#layout.cpuset
    return root === undefined ? undefined : join(root, this.#path, 'cpuset.cpus')
  }

  async cpus() {
    const file = this.#cpuset()
    return file === undefined ? undefined : (await readIfThere(file))?.trim() || undefined
  }

  async useCpus(list: string) {
    const file = this.#cpuset()
    if (file !== undefined) await write(file, list)
  }

  outOfMemoryKills() {
    return parseCounters(readNowIfThere(this.#file('memory', 'memory.oom_control')) ?? '').get('oom_kill') ?? 0
  }

  refusedProcesses() {
    return parseCounters(readNowIfThere(this.#file('pids', 'pids.events')) ?? '').get('max') ?? 0
  }

  memoryInUse() {
    const bytes = readNowIfThere(this.#file('memory', 'memory.usage_in_bytes'))
    return bytes === undefined ? undefined : Number(bytes)
  }

  memoryUse() {
    const stat = readNowIfThere(this.#file('memory', 'memory.stat'))
    if (stat === undefined) return undefined
    const counters = parseCounters(stat)
    const of = (name: string) => counters.get(name) ?? 0
    return {
      ...ofBothVersions(of, this.memoryInUse() ?? 0),
      anonymous: of('rss'),
      cached: of('cache'),
      mapped: of('mapped_file'),
      dirty: of('dirty'),
      writeback: of('writeback'),
      // Cgroup v1 does not report reclaimable and unreclaimable slab memory separately, so both values are 0.
      slabReclaimable: 0,
      slabUnreclaimable: 0,
    }
  }

  kernelMemory() {
    const bytes = readNowIfThere(this.#file('memory', 'memory.kmem.usage_in_bytes'))
    if (bytes === undefined) return undefined
    // Cgroup v1 counts socket buffers separately, so they are added.
    return Number(bytes) + Number(readNowIfThere(this.#file('memory', 'memory.kmem.tcp.usage_in_bytes')) ?? 0)
  }

  cpuSeconds() {
    const nanoseconds = readNowIfThere(this.#file('cpuacct', 'cpuacct.usage'))
    return nanoseconds === undefined ? undefined : Number(nanoseconds) / 1e9
  }

  systemSeconds() {
    const nanoseconds = readNowIfThere(this.#file('cpuacct', 'cpuacct.usage_sys'))
    return nanoseconds === undefined ? undefined : Number(nanoseconds) / 1e9
  }

  async usage() {
    const cpu = await readIfThere(this.#file('cpuacct', 'cpuacct.usage'))
    if (cpu === undefined) return undefined
    return {
      cpuSeconds: Number(cpu) / 1e9,
      memoryBytes: Number((await readIfThere(this.#file('memory', 'memory.usage_in_bytes'))) ?? 0),
      processes: Number((await readIfThere(this.#file('pids', 'pids.current'))) ?? 0),
    }
  }

  async remove() {
    await Promise.all(this.#layout.allRoots.map((root) => removeTree(join(root, this.#path))))
  }
}

/** Returns the cgroup at `path`, which begins with a slash as in the runtime's `cgroupsPath`. */
export const cgroupAt = (layout: CgroupLayout, path: string): Cgroup =>
  layout.version === 2 ? new CgroupV2(layout.root, path) : new CgroupV1(layout, path)

/** Lists the names of all cgroups directly below `path`, in any hierarchy. */
export const listCgroups = async (layout: CgroupLayout, path: string): Promise<string[]> => {
  const roots = layout.version === 2 ? [layout.root] : layout.allRoots
  const lists = await Promise.all(
    roots.map(async (root) => {
      try {
        return (await readdir(join(root, path), { withFileTypes: true })).filter((entry) => entry.isDirectory())
      } catch (error) {
        if (hasCode(error, 'ENOENT')) return []
        throw error
      }
    }),
  )
  return [...new Set(lists.flat().map((entry) => entry.name))]
}

/**
 * Returns whether the kernel can limit socket buffers separately from other memory. In cgroup v2, socket buffers count as memory
 * of the cgroup.
 */
export const limitsSockets = (layout: CgroupLayout): boolean =>
  layout.version === 1 && existsSync(join(layout.roots.memory, 'memory.kmem.tcp.limit_in_bytes'))

/** Returns whether the kernel counts swap. Only then can a swap limit be set. */
export const limitsSwap = async (layout: CgroupLayout): Promise<boolean> => {
  if (layout.version === 1)
    return (await readIfThere(join(layout.roots.memory, 'memory.memsw.limit_in_bytes'))) !== undefined
  // The root cgroup never has the file `memory.swap.max`. Every other cgroup has it if the kernel counts swap.
  const [any] = await listCgroups(layout, '/')
  return any !== undefined && (await readIfThere(join(layout.root, any, 'memory.swap.max'))) !== undefined
}
