// Directories of a pool that are made, copied and removed as a whole: btrfs subvolumes, or plain directories without btrfs. A
// directory with its final name is complete. Names of unfinished directories begin with a dot, which no sandbox's name does.
import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Batches, type Outcomes } from '#src/kit/batches.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { hasCode } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'

const coming = '.coming-'
const leaving = '.leaving-'

/** Maximum number of copies that are made in one batch. */
const mostAtOnce = 32
const copyTimeoutMs = 10 * 60_000
const settleTimeoutMs = 2 * 60_000

export const isName = (text: string) => /^[A-Za-z0-9._-]{1,255}$/.test(text) && text !== '.' && text !== '..'

/**
 * Parses lines such as `0/257  16384  16384  disks/name`, which btrfs-qgroup(8) prints for subvolumes directly below a directory
 * of this name.
 */
const parseSizes = (table: string, directory: string): ReadonlyMap<string, number> => {
  const sizes = new Map<string, number>()
  for (const line of table.split('\n')) {
    const [, bytes, path] = /^0\/\d+\s+(\d+)\s+\d+\s+(\S+)\s*$/.exec(line) ?? []
    const [name = '', parent] = (path ?? '').split('/').reverse()
    if (parent === directory && isName(name)) sizes.set(name, Number(bytes))
  }
  return sizes
}

/** Steps that change a copy before it gets its name, and steps that then write these changes to the disk. */
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

  /** Path of a volume. Throws for text that is not a plain name, because it could lead out of the directory. */
  pathOf(name: string) {
    if (!isName(name)) throw new Error(`${JSON.stringify(name.slice(0, 128))} is no name here.`)
    return join(this.#directory, name)
  }

  /** Lists the names of all directories, including unfinished and half-removed directories. */
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

  /** Copies the directory at `from`. The changes are made before the copy gets its name. Instant for subvolumes. */
  async copy(from: string, name: string, changes: (path: string) => Changes): Promise<void> {
    const unfinished = `${coming}${name}`
    const path = this.pathOf(unfinished)
    const copy = { from, path, rename: step.rename(path, this.pathOf(name)), ...changes(path) }
    try {
      await (this.areSubvolumes ? this.#copies.run(copy) : this.#copyFiles(copy))
    } catch (error) {
      // On a full disk a copy succeeds but cannot be changed. If its removal fails too, the next opening of the pool removes it.
      await this.remove(unfinished).catch(() => {})
      throw error
    }
  }

  async #copyFiles({ from, path, change, sync, rename }: Copy): Promise<void> {
    await removeTree(path)
    await runCommand(['cp', '--archive', '--reflink=auto', from, path], { timeoutMs: copyTimeoutMs })
    await runSteps(this.#launcher, [...change, ...sync, rename])
  }

  /**
   * Snapshots, changes and syncs a batch of copies together. Each snapshot and each sync commits the file system. At each commit
   * the kernel counts again which data a changed copy shares with others, which is slow. The first sync of a batch commits the
   * changes of all its copies.
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

  /** Resolves when all volumes that were copied before this call have their names on the disk. */
  settle(): Promise<void> {
    return this.#settling.run()
  }

  async #settleNow(): Promise<void> {
    if (!this.areSubvolumes)
      return void (await runCommand(['sync', '--file-system', this.#directory], { timeoutMs: settleTimeoutMs }))
    // A snapshot is durable once made, so only its name is synced here. The steps that change a copy sync what they write.
    await runSteps(this.#launcher, [step.sync(this.#directory)])
  }

  /** Bytes of a volume, as its disk limit counts them; undefined if the kernel does not count them. */
  async sizeOf(name: string): Promise<number | undefined> {
    if (!this.areSubvolumes) return undefined
    const path = this.pathOf(name)
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', '-f', path]).catch(() => '')
    const referenced = /^\d+\/\d+\s+(\d+)\s/m.exec(table)?.[1]
    return referenced === undefined ? undefined : Number(referenced)
  }

  /** Bytes of every volume, read by one process. Empty if the kernel does not count them or does not report their names. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    if (!this.areSubvolumes) return new Map()
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', this.#directory]).catch(() => '')
    return parseSizes(table, basename(this.#directory))
  }

  /** Removes a volume. Atomic, even if killed. No error if the volume does not exist. */
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
