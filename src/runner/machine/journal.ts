// What should exist for each sandbox, on disk, so that the next runner can finish or undo what this one began.
//
// `spec.json` is the durable half: it is on the disk before anybody hears that the sandbox is there. `run.json` is true for
// one boot of the machine only, so it is replaced atomically but never waited for: after a power cut it means nothing.
// A directory without a readable spec belongs to a sandbox that was never reported.
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '#src/kit/sync-path.ts'
import type { Archive } from '#src/runner/archive/pack.ts'
import { hasCode } from '#src/runner/cgroup/files.ts'
import type { Assignment, Cause } from '#src/wire/runner-link.ts'

export type Spec = {
  assignment: Assignment
  /** `started` stays here when a sandbox ends by itself while no runner looks; `run.json` and the host tell the rest. */
  status: 'started' | 'stopped' | 'archived' | 'error'
  errorReason?: string
  cause?: Cause
  /** The sandbox's archive. Once it is set there is no disk on this host, or what is left of it is removed. */
  archive?: Archive
  /** Why what the assignment's generation asked for was not done; the sandbox is as it was. */
  refused?: string
}

export type Run = {
  bootId: string
  /** The network namespace. */
  slot: string
  /** PID 1 of the sandbox as the host sees it. Absent until the start is complete, network policy included. */
  pid?: number
  /** Clock ticks since boot: with the pid, it names one process for ever. */
  startTime?: string
  /** It was asked to be paused. Whether it is, the freezer of its cgroup says. */
  isPaused?: boolean
}

export type Entry = { spec: Spec; run: Run | undefined }

const specName = 'spec.json'
const owedName = 'archives'
const runName = 'run.json'
const gone = '.gone-'

export class Journal {
  readonly #directory: string
  /** Specs on their way to the disk that nobody waits for. */
  readonly #late = new Map<string, Promise<void>>()

  constructor(directory: string) {
    this.#directory = directory
  }

  directoryOf(sandboxId: string) {
    return join(this.#directory, sandboxId)
  }

  /** Every sandbox that has a directory, with a readable journal or not. */
  async list(): Promise<string[]> {
    return (await readdir(this.#directory)).filter((name) => !name.startsWith(gone))
  }

  /** Sandboxes whose removal was begun. */
  async listGone(): Promise<string[]> {
    return (await readdir(this.#directory))
      .filter((name) => name.startsWith(gone))
      .map((name) => name.slice(gone.length))
  }

  /** Undefined if there is no entry, or only an incomplete one. */
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

  /** On the disk when this resolves. */
  async writeSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    const directory = await this.makeDirectory(sandboxId)
    await replace(join(directory, specName), spec, true)
    await Promise.all([syncPath(directory), syncPath(this.#directory)])
  }

  /** In place of another one: after a power cut it is this or that, and whole. */
  async rewriteSpec(sandboxId: string, spec: Spec): Promise<void> {
    await this.#late.get(sandboxId)
    await replace(join(this.directoryOf(sandboxId), specName), spec, true)
  }

  /**
   * Rewrites a spec that control told again to a runner that lacks it: nobody waits for the disk. What is written next
   * of this sandbox comes after it. `onFailed`: it is as it was.
   */
  rewriteSpecLate(sandboxId: string, spec: Spec, onFailed: (error: unknown) => void): void {
    const writing = this.rewriteSpec(sandboxId, spec)
      .catch(onFailed)
      .finally(() => {
        if (this.#late.get(sandboxId) === writing) this.#late.delete(sandboxId)
      })
    this.#late.set(sandboxId, writing)
  }

  /** Nothing is on its way to the disk any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#late.values())
  }

  /** Writes `run.json` of a sandbox whose directory is there: it has a spec, or is about to have one. */
  async writeRun(sandboxId: string, run: Run): Promise<void> {
    await replace(join(this.directoryOf(sandboxId), runName), run, false)
  }

  /** From here on the sandbox is nobody's: what is left of it may go, and nothing can start it again. */
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

  /** That its archives go too will be known until it is forgotten. */
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
