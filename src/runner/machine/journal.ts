// Records on disk what should exist for each sandbox, so that the next runner can finish or undo what this runner began.
//
// `spec.json` is durable: it is on the disk before the sandbox is reported. `run.json` is valid for one boot of the machine
// only. Therefore `run.json` is replaced atomically, but no call waits until it is on the disk. A directory without a readable
// spec belongs to a sandbox that was never reported.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '#src/kit/sync-path.ts'
import type { Archive } from '#src/runner/archive/pack.ts'
import { hasCode } from '#src/runner/cgroup/files.ts'
import type { Assignment, Cause } from '#src/wire/runner-link.ts'

export type Spec = {
  assignment: Assignment
  /**
   * Status when the spec was last written. If a sandbox ends by itself while no runner runs, the status is still `started`. The
   * next runner learns of the end from `run.json` and the host.
   */
  status: 'started' | 'stopped' | 'archived' | 'error'
  errorReason?: string
  cause?: Cause
  /** The sandbox's archive. Once it is set, a disk on this host is only a leftover that will be removed. */
  archive?: Archive
  /** The base image of the sandbox's archived disk. */
  base?: string
  /** Why the runner refused the assignment of this generation. The sandbox stays as it was. */
  refused?: string
}

export type Run = {
  bootId: string
  /** The name of the network namespace. */
  slot: string
  /** PID 1 of the sandbox as the host sees it. Absent until the start is complete, network policy included. */
  pid?: number
  /** Start time in clock ticks since boot. Pid and start time together identify a process uniquely. */
  startTime?: string
  /** Whether the sandbox was asked to pause. The freezer of its cgroup shows whether it really is paused. */
  isPaused?: boolean
}

export type Entry = { spec: Spec; run: Run | undefined }

const specName = 'spec.json'
const owedName = 'archives'
const runName = 'run.json'
const gone = '.gone-'

export class Journal {
  readonly #directory: string
  /** Writes of `rewriteSpecLate` that are not on the disk yet, by sandbox. No caller waits for them. */
  readonly #late = new Map<string, Promise<void>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  directoryOf(sandboxId: string) {
    return join(this.#directory, sandboxId)
  }

  /** Lists every sandbox that has a directory, whether its journal is readable or not. */
  async list(): Promise<string[]> {
    return (await readdir(this.#directory)).filter((name) => !name.startsWith(gone))
  }

  /** Lists sandboxes whose removal has begun. */
  async listGone(): Promise<string[]> {
    return (await readdir(this.#directory))
      .filter((name) => name.startsWith(gone))
      .map((name) => name.slice(gone.length))
  }

  /** Reads the journal of a sandbox. Undefined if there is no entry, or only an incomplete entry. */
  async read(sandboxId: string): Promise<Entry | undefined> {
    const directory = this.directoryOf(sandboxId)
    const spec = await readJson<Spec>(join(directory, specName))
    return spec === undefined ? undefined : { spec, run: await readJson<Run>(join(directory, runName)) }
  }

  async makeDirectory(sandboxId: string): Promise<string> {
    const directory = this.directoryOf(sandboxId)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    return directory
  }

  /** Resolves when the spec is on the disk. */
  async writeSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    const directory = await this.makeDirectory(sandboxId)
    await replace(join(directory, specName), spec, true)
    await Promise.all([syncPath(directory), syncPath(this.#directory)])
  }

  /** Replaces the spec. After a power cut the old or the new spec is on the disk, and it is whole. */
  async rewriteSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    await replace(join(this.directoryOf(sandboxId), specName), spec, true)
  }

  /**
   * Replaces the spec without waiting for the disk. A lost rewrite does no harm, because control repeats the assignment. Later
   * writes for this sandbox come after this one. `onFailed` is called if the write failed; the old spec then remains.
   */
  rewriteSpecLate(sandboxId: string, spec: Spec, onFailed: (error: unknown) => void): void {
    const writing = this.rewriteSpec(sandboxId, spec)
      .catch(onFailed)
      .finally(() => {
        if (this.#late.get(sandboxId) === writing) this.#late.delete(sandboxId)
      })
    this.#late.set(sandboxId, writing)
  }

  /** Resolves when all writes of `rewriteSpecLate` are on the disk or have failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#late.values())
  }

  /** Writes `run.json` into the sandbox's directory, which must exist. The caller has written the spec, or writes it next. */
  async writeRun(sandboxId: string, run: Run): Promise<void> {
    await replace(join(this.directoryOf(sandboxId), runName), run, false)
  }

  /** Marks the sandbox as removed: its leftovers may be deleted, and nothing can start it again. */
  async disown(sandboxId: string): Promise<void> {
    await this.#late.get(sandboxId)
    const to = this.directoryOf(`${gone}${sandboxId}`)
    await rm(to, { recursive: true, force: true })
    try {
      await rename(this.directoryOf(sandboxId), to)
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
    }
    await syncPath(this.#directory)
  }

  /** Records that the sandbox's archives must be removed too. The record lasts until the sandbox is forgotten. */
  async oweArchives(sandboxId: string): Promise<void> {
    const directory = await this.makeDirectory(sandboxId)
    await replace(join(directory, owedName), {}, true)
    await syncPath(directory)
  }

  /** Whether a sandbox whose removal was begun still has archives to remove. */
  async owesArchives(sandboxId: string): Promise<boolean> {
    return (await readJson(join(this.directoryOf(`${gone}${sandboxId}`), owedName))) !== undefined
  }

  async forget(sandboxId: string): Promise<void> {
    await rm(this.directoryOf(`${gone}${sandboxId}`), { recursive: true, force: true })
  }
}

const readJson = async <T>(path: string): Promise<T | undefined> => {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as T
  } catch (error) {
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
}

let written = 0

const replace = async (path: string, value: unknown, isDurable: boolean) => {
  const unfinished = `${path}.${++written}`
  await writeFile(unfinished, JSON.stringify(value), { mode: 0o600, flush: isDurable })
  await rename(unfinished, path)
}
