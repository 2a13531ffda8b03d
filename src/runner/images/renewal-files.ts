// Files by which the command `alcove` requests a renewal of the default image, and the runner reports the renewal's state.
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type RenewalState = {
  /** When the default image in use was made. */
  madeAt?: string
  /** The renewal of the default image that is running or, if none is running, the last one. */
  renewal?: {
    /**
     * Id of the request that started this renewal. Absent: nobody requested the renewal; for example, the image was 30 days old.
     */
    request?: string
    state: 'running' | 'done' | 'failed'
    /** When this state began: the start of a running renewal, or the end of a finished one. */
    since: string
    step?: string
    percent?: number
    /** Why the renewal of the default image failed. */
    reason?: string
  }
}

export class RenewalFiles {
  readonly directory: string

  constructor(runnerDirectory: string) {
    this.directory = join(runnerDirectory, 'renewal')
  }

  open(): void {
    mkdirSync(this.directory, { recursive: true, mode: 0o700 })
  }

  read(): RenewalState {
    return (this.#read('state.json') ?? {}) as RenewalState
  }

  write(state: RenewalState): void {
    this.#write('state.json', state)
  }

  /** Writes a request for a renewal, which the runner reads. Returns the id of the request. */
  request(): string {
    const request = randomBytes(8).toString('hex')
    this.#write('request.json', { request })
    return request
  }

  takeRequest(): string | undefined {
    const { request } = (this.#read('request.json') ?? {}) as { request?: unknown }
    rmSync(join(this.directory, 'request.json'), { force: true })
    return typeof request === 'string' ? request : undefined
  }

  #read(name: string): unknown {
    try {
      return JSON.parse(readFileSync(join(this.directory, name), 'utf8'))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || error instanceof SyntaxError) return undefined
      throw error
    }
  }

  #write(name: string, content: object) {
    const path = join(this.directory, name)
    writeFileSync(`${path}.new`, JSON.stringify(content))
    renameSync(`${path}.new`, path)
  }
}
