// Directories of a pool that are made, copied and removed as a whole: btrfs subvolumes, or plain directories where there
// are none. What has its name is whole; what is on its way in or out begins with a dot, which no sandbox's name does.
import { mkdir, readdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { hasCode } from '../cgroup/files.ts'
import { runSteps, type Step, step } from '../launch.ts'

const coming = '.coming-'
const leaving = '.leaving-'

const copyTimeoutMs = 10 * 60_000
const settleTimeoutMs = 2 * 60_000

export const isName = (text: string) => /^[A-Za-z0-9._-]{1,255}$/.test(text) && text !== '.' && text !== '..'

/** `0/257  16384  16384  disks/name`: what btrfs-qgroup(8) says of the subvolumes right below a directory of this name. */
const parseSizes = (table: string, directory: string): ReadonlyMap<string, number> => {
  const sizes = new Map<string, number>()
  for (const line of table.split('\n')) {
    const [, bytes, path] = /^0\/\d+\s+(\d+)\s+\d+\s+(\S+)\s*$/.exec(line) ?? []
    const [name = '', parent] = (path ?? '').split('/').reverse()
    if (parent === directory && isName(name)) sizes.set(name, Number(bytes))
  }
  return sizes
}

export class Volumes {
  readonly #launcher: string
  readonly #directory: string
  readonly #areSubvolumes: boolean

  private constructor(launcher: string, directory: string, areSubvolumes: boolean) {
    this.#launcher = launcher
    this.#directory = directory
    this.#areSubvolumes = areSubvolumes
  }

  static async open(launcher: string, directory: string, areSubvolumes: boolean): Promise<Volumes> {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    return new Volumes(launcher, directory, areSubvolumes)
  }

  /** Throws for a text that is not a plain name, because it could lead elsewhere. */
  pathOf(name: string) {
    if (!isName(name)) throw new Error(`${JSON.stringify(name.slice(0, 128))} is no name here.`)
    return join(this.#directory, name)
  }

  /** With what is on its way in or out. */
  list() {
    return readdir(this.#directory)
  }

  stepToMake(name: string): Step {
    const path = this.pathOf(name)
    return this.#areSubvolumes ? step.subvolume(path) : step.directory(path, 0, 0o700)
  }

  stepsToLimit(path: string, bytes: number): Step[] {
    return this.#areSubvolumes ? [step.limit(path, bytes)] : []
  }

  /** A copy of what is at `from` now, which the steps change before it gets its name. Of subvolumes, at once. */
  async copy(from: string, name: string, change: (path: string) => Step[]): Promise<void> {
    const unfinished = `${coming}${name}`
    try {
      await this.#copyAs(unfinished, from, name, change)
    } catch (error) {
      // On a full disk a copy is made at once and cannot be changed. What will not go now goes when this is opened again.
      await this.remove(unfinished).catch(() => {})
      throw error
    }
  }

  async #copyAs(unfinished: string, from: string, name: string, change: (path: string) => Step[]): Promise<void> {
    const path = this.pathOf(unfinished)
    const finish = [...change(path), step.rename(path, this.pathOf(name))]
    if (this.#areSubvolumes)
      return runSteps(this.#launcher, [step.deleteSubvolume(path), step.snapshot(from, path), ...finish])
    await removeTree(path)
    await runCommand(['cp', '--archive', '--reflink=auto', from, path], { timeoutMs: copyTimeoutMs })
    await runSteps(this.#launcher, finish)
  }

  /** What was copied has its name on the disk when this resolves. */
  async settle(): Promise<void> {
    if (!this.#areSubvolumes)
      return void (await runCommand(['sync', '--file-system', this.#directory], { timeoutMs: settleTimeoutMs }))
    // A snapshot is there as soon as it is made; this is for its name. What its steps wrote into it, they see to themselves.
    await runSteps(this.#launcher, [step.sync(this.#directory)])
  }

  /** In bytes, as a limit would count them; undefined where the kernel does not. */
  async sizeOf(name: string): Promise<number | undefined> {
    if (!this.#areSubvolumes) return undefined
    const path = this.pathOf(name)
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', '-f', path]).catch(() => '')
    const referenced = /^\d+\/\d+\s+(\d+)\s/m.exec(table)?.[1]
    return referenced === undefined ? undefined : Number(referenced)
  }

  /** Bytes of all volumes, by one process; empty where the kernel does not count them, or does not say whose they are. */
  async sizes(): Promise<ReadonlyMap<string, number>> {
    if (!this.#areSubvolumes) return new Map()
    const table = await runCommand(['btrfs', 'qgroup', 'show', '--raw', this.#directory]).catch(() => '')
    return parseSizes(table, basename(this.#directory))
  }

  /** All or nothing, also when killed half-way. Fine when it is gone already. */
  async remove(name: string): Promise<void> {
    if (this.#areSubvolumes) return runSteps(this.#launcher, [step.deleteSubvolume(this.pathOf(name))])
    const going = this.pathOf(`${leaving}${name.replace(leaving, '')}`)
    try {
      if (!name.startsWith(leaving)) await rename(this.pathOf(name), going)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await removeTree(going)
  }
}
