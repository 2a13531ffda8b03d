// The journal: files that record what this host should have of each sandbox. From these files, the next runner can finish or undo
// what this runner has begun.
//
// `spec.json` must survive a power cut, so it is on the disk before the sandbox is reported. `run.json` is valid only until the
// machine restarts, so it is replaced atomically, but without waiting for the disk. A directory without a readable `spec.json`
// belongs to a sandbox that was never reported.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '#src/kit/sync-path.ts'
import type { Archive } from '#src/runner/archive/pack.ts'
import { hasCode } from '#src/runner/cgroup/files.ts'
import type { Assignment, Cause } from '#src/wire/runner-link.ts'

export type Spec = {
  assignment: Assignment
  /** Status of the sandbox when the spec was written. The status stays `started` if the sandbox ends while no runner runs. */
  status: 'started' | 'stopped' | 'archived' | 'error'
  errorReason?: string
  cause?: Cause
  /** The archive that holds the sandbox's disk. If an archive is recorded, the runner removes the disk from this host. */
  archive?: Archive
  /** The newest save of the sandbox's disk. Absent if there is no save, or if the disk may have changed since the save. */
  saved?: Archive
  /** The base image of the sandbox's disk. Only set if the disk was archived. */
  base?: string
  /**
   * Why the runner refused a part of the assignment. If new sizes were refused, the sandbox keeps all of its sizes, but gets all
   * other changes.
   */
  refused?: string
}

export type Run = {
  bootId: string
  /** The name of the sandbox's network namespace. */
  slot: string
  /** Process id, on the host, of the sandbox's PID 1. Absent until the start is complete and the network policy applies. */
  pid?: number
  /** When PID 1 started, in clock ticks since boot. Process id and start time together identify a process uniquely. */
  startTime?: string
  /** Whether control has requested a pause of the sandbox. The freezer of its cgroup shows whether it is really paused. */
  isPaused?: boolean
}

export type Entry = { spec: Spec; run: Run | undefined }

const specName = 'spec.json'
const owedName = 'archives'
const runName = 'run.json'
const gone = '.gone-'

export class Journal {
  readonly #directory: string
  /**
   * Writes of `rewriteSpecLate` that are not on the disk yet, by sandbox id. Later writes of a sandbox's spec wait for the
   * sandbox's earlier write.
   */
  readonly #late = new Map<string, Promise<void>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  directoryOf(sandboxId: string) {
    return join(this.#directory, sandboxId)
  }

  /** Lists every sandbox that has a directory in the journal, even if its files cannot be read. */
  async list(): Promise<string[]> {
    return (await readdir(this.#directory)).filter((name) => !name.startsWith(gone))
  }

  /** Lists the sandboxes that were marked as removed (`disown`) and still have files. */
  async listGone(): Promise<string[]> {
    return (await readdir(this.#directory))
      .filter((name) => name.startsWith(gone))
      .map((name) => name.slice(gone.length))
  }

  /** Reads the entry of a sandbox. Undefined if its `spec.json` is missing or damaged. */
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

  /** Writes the spec. Resolves when the spec is on the disk. */
  async writeSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    const directory = await this.makeDirectory(sandboxId)
    await replace(join(directory, specName), spec, true)
    await Promise.all([syncPath(directory), syncPath(this.#directory)])
  }

  /** Replaces the spec. After a power cut, either the old or the new spec is on the disk, completely. */
  async rewriteSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    await replace(join(this.directoryOf(sandboxId), specName), spec, true)
  }

  /**
   * Begins to replace the spec, and returns before the new spec is on the disk. If a power cut loses the write, control sends the
   * assignment again. If the write fails, the old spec stays and `onFailed` is called.
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

  /**
   * Writes `run.json` into the sandbox's directory, which must exist. If the directory has no `spec.json`, the sandbox does not
   * exist for the next runner.
   */
  async writeRun(sandboxId: string, run: Run): Promise<void> {
    await replace(join(this.directoryOf(sandboxId), runName), run, false)
  }

  /** Marks the sandbox as removed. From then on nothing can start it again, and its files may be deleted. */
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

  /** Records that the sandbox's archives must be removed, too. `forget` removes this record. */
  async oweArchives(sandboxId: string): Promise<void> {
    const directory = await this.makeDirectory(sandboxId)
    await replace(join(directory, owedName), {}, true)
    await syncPath(directory)
  }

  /** Returns whether a sandbox that is being removed (`disown`) has archives that must still be removed. */
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
