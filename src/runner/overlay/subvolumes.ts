// Makes, copies and removes volumes. In this file, every disk, template and volume of a pool is called a volume: a btrfs subvolume,
// or without btrfs a plain directory. The name of an unfinished volume begins with a dot, unlike any sandbox id.
import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Batches, type Outcomes } from '#src/kit/batches.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { hasCode } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'

const coming = '.coming-'
const leaving = '.leaving-'

/** Maximum number of copies in one batch. */
const mostAtOnce = 32
const copyTimeoutMs = 10 * 60_000
const settleTimeoutMs = 2 * 60_000

export const isName = (text: string) => /^[A-Za-z0-9._-]{1,255}$/.test(text) && text !== '.' && text !== '..'

/** Parses lines such as `0/257 16384 16384 disks/name` of btrfs-qgroup(8). Returns the size of each subvolume in `directory`. */
const parseSizes = (table: string, directory: string): ReadonlyMap<string, number> => {
  const sizes = new Map<string, number>()
  for (const line of table.split('\n')) {
    const [, bytes, path] = /^0\/\d+\s+(\d+)\s+\d+\s+(\S+)\s*$/.exec(line) ?? []
    const [name = '', parent] = (path ?? '').split('/').reverse()
    if (parent === directory && isName(name)) sizes.set(name, Number(bytes))
  }
  return sizes
}

/** `change`: steps that change a copy before it gets its name. `sync`: later steps that write the changes to the storage device. */
export type Changes = { change: Step[]; sync: Step[] }

type Copy = { from: string; path: string; rename: Step } & Changes

export class Subvolumes {
  readonly #launcher: string
  readonly #directory: string
  readonly areSubvolumes: boolean
  readonly #copies = new Batches<Copy>(mostAtOnce, (copies) => this.#snapshotAll(copies))
  readonly #settling = new Batches<void>(Number.POSITIVE_INFINITY, async (callers) => {
    await this.#settleNow()
    return Promise.allSettled(callers)
  })

  private constructor(launcher: string, directory: string, areSubvolumes: boolean) {
    this.#launcher = launcher
    this.#directory = directory
    this.areSubvolumes = areSubvolumes
  }

  static async open(launcher: string, directory: string, areSubvolumes: boolean): Promise<Subvolumes> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    return new Subvolumes(launcher, directory, areSubvolumes)
  }

  /** Returns the path of a volume. Throws if `name` is not a plain name: the path could be outside of the pool. */
  pathOf(name: string) {
    if (!isName(name)) throw new Error(`${JSON.stringify(name.slice(0, 128))} is no name here.`)
    return join(this.#directory, name)
  }

  /** Lists the names of all volumes, also of unfinished and half-removed volumes. */
  list() {
    return readdir(this.#directory)
  }

  stepToMake(name: string): Step {
    const path = this.pathOf(name)
    return this.areSubvolumes ? step.subvolume(path) : step.directory(path, 0, 0o700)
  }

  stepsToLimit(path: string, bytes: number): Step[] {
    return this.areSubvolumes ? [step.limit(path, bytes)] : []
  }

  /** Copies the directory at `from` to the volume `name`. The copy gets this name after `changes`. */
  async copy(from: string, name: string, changes: (path: string) => Changes): Promise<void> {
    const unfinished = `${coming}${name}`
    const path = this.pathOf(unfinished)
    const copy = { from, path, rename: step.rename(path, this.pathOf(name)), ...changes(path) }
    try {
      await (this.areSubvolumes ? this.#copies.run(copy) : this.#copyFiles(copy))
    } catch (error) {
      // On a full disk, btrfs can make a copy but cannot change the copy. If the removal fails, the next start of the runner
      // removes the copy.
      await this.remove(unfinished).catch(() => {})
      throw error
    }
  }

  /**
   * Makes the volume `name`: runs `steps` on an empty volume, then calls `fill`. After `fill`, the volume gets its name. Before
   * `fill` resolves, it must therefore write its files to the storage device (fsync).
   */
  async fill(name: string, steps: (path: string) => Step[], fill: (path: string) => Promise<void>): Promise<void> {
    const unfinished = `${coming}${name}`
    const path = this.pathOf(unfinished)
    await this.remove(unfinished)
    try {
      await runSteps(this.#launcher, [this.stepToMake(unfinished), ...steps(path)])
      await fill(path)
      await runSteps(this.#launcher, [step.rename(path, this.pathOf(name))])
    } catch (error) {
      await this.remove(unfinished).catch(() => {})
      throw error
    }
    await this.settle()
  }

  async #copyFiles({ from, path, change, sync, rename }: Copy): Promise<void> {
    await removeTree(path)
    await runCommand(['cp', '--archive', '--reflink=auto', from, path], { timeoutMs: copyTimeoutMs })
    await runSteps(this.#launcher, [...change, ...sync, rename])
  }

  /**
   * Makes several copies in three rounds: all snapshots, all changes, all syncs. Each snapshot and each sync makes btrfs commit. A
   * commit after changes is slow, because the kernel then recounts shared data for the quotas. In this order, only the first sync
   * commits changes.
   */
  async #snapshotAll(copies: readonly Copy[]): Promise<Outcomes> {
    const failures = new Map<Copy, unknown>()
    const runAll = async (some: readonly Copy[], stepsOf: (copy: Copy) => Step[]) => {
      const running = some.map((copy) =>
        runSteps(this.#launcher, stepsOf(copy)).catch((error: unknown) => void failures.set(copy, error)),
      )
      await Promise.all(running)
    }
    const healthy = () => copies.filter((copy) => !failures.has(copy))
    const snapshot = ({ from, path }: Copy) => [step.deleteSubvolume(path), step.snapshot(from, path)]
    const finish = ({ sync, rename }: Copy) => [...sync, rename]
    if (copies.length === 1) await runAll(copies, (copy) => [...snapshot(copy), ...copy.change, ...finish(copy)])
    else {
      await runAll(copies, snapshot)
      await runAll(healthy(), ({ change }) => change)
      const [first, ...others] = healthy()
      if (first !== undefined) await runAll([first], finish)
      await runAll(others, finish)
    }
    return Promise.allSettled(copies.map((copy) => failures.has(copy) && Promise.reject(failures.get(copy))))
  }

  /** Resolves when the names of all copies that were made before this call are on the storage device. */
  settle(): Promise<void> {
    return this.#settling.run()
  }

  async #settleNow(): Promise<void> {
    if (!this.areSubvolumes)
      return void (await runCommand(['sync', '--file-system', this.#directory], { timeoutMs: settleTimeoutMs }))
    // This sync writes only the names of new copies, because the data of the copies is on the storage device already.
    await runSteps(this.#launcher, [step.sync(this.#directory)])
  }

  /** Returns the bytes of a volume that count towards its size limit. Undefined if the kernel does not count these bytes. */
  async sizeOf(name: string): Promise<number | undefined> {
    if (!this.areSubvolumes) return undefined
    const path = this.pathOf(name)
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', '-f', path]).catch(() => '')
    const referenced = /^\d+\/\d+\s+(\d+)\s/m.exec(table)?.[1]
    return referenced === undefined ? undefined : Number(referenced)
  }

  /** Returns each volume's size in bytes, by name. Empty if the kernel counts no sizes or reports no names. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    if (!this.areSubvolumes) return new Map()
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', this.#directory]).catch(() => '')
    return parseSizes(table, basename(this.#directory))
  }

  /** Removes a volume. If the runner is killed meanwhile, the volume is complete or gone. A missing volume is no error. */
  async remove(name: string): Promise<void> {
    if (this.areSubvolumes) return runSteps(this.#launcher, [step.deleteSubvolume(this.pathOf(name))])
    const going = this.pathOf(`${leaving}${name.replace(leaving, '')}`)
    try {
      if (!name.startsWith(leaving)) await rename(this.pathOf(name), going)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await removeTree(going)
  }
}
