// A simulated user who uses several sandboxes while programs of the server are killed. It checks later that each confirmed change
// still exists.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client, Record_ } from './client.ts'
import type { Random } from './random.ts'

type KnownSandbox = {
  record: Record_
  /** The content of each file in the sandbox whose write was confirmed, by path. */
  files: Map<string, string>
}

export type Verb =
  | 'create'
  | 'write'
  | 'read'
  | 'pause'
  | 'resume'
  | 'stop'
  | 'start'
  | 'resize'
  | 'fork'
  | 'snapshot'
  | 'archive'
  | 'restore'
  | 'delete'

export type Tally = Map<string, number>

const settled = ['started', 'stopped', 'paused', 'archived', 'error']
const mostSandboxes = 3
/**
 * A verb that takes longer than this, in ms, while programs are killed is reported as stuck. The limit is less than the 120 s after
 * which control gives up a start.
 */
const stuckAfterMs = 100_000

const home = '/home/daytona'

export class Worker {
  readonly #client: Client
  readonly #random: Random
  readonly #tally: Tally
  readonly #name: string
  readonly #lookInto: (sandboxId: string) => string[]
  readonly #sandboxes: KnownSandbox[] = []
  #made = 0
  readonly complaints: string[] = []

  constructor(parts: {
    client: Client
    random: Random
    tally: Tally
    name: string
    /** Returns lines about a sandbox from the logs of all programs. */
    lookInto: (sandboxId: string) => string[]
  }) {
    this.#client = parts.client
    this.#random = parts.random
    this.#tally = parts.tally
    this.#name = parts.name
    this.#lookInto = parts.lookInto
  }

  async run(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      try {
        await this.#step()
      } catch (error) {
        this.complaints.push(String(error))
        return
      }
    }
  }

  /**
   * Waits until no verb is in progress, and checks that every confirmed change still exists. Call this method after the last kill.
   */
  async settle(): Promise<void> {
    for (const known of [...this.#sandboxes]) {
      await this.#rest(known)
      if (!this.#sandboxes.includes(known)) continue
      await this.#bringUp(known)
      await this.#read(known)
    }
  }

  get names(): string[] {
    return this.#sandboxes.map(({ record }) => record.name)
  }

  #count(word: string) {
    this.#tally.set(word, (this.#tally.get(word) ?? 0) + 1)
  }

  async #step() {
    const known = this.#sandboxes[this.#random.below(mostSandboxes)]
    if (known === undefined) return await this.#create()
    const verb = this.#random.pick(choices[known.record.state] ?? [[1, 'read']])
    this.#count(verb)
    switch (verb) {
      case 'write':
        return await this.#write(known)
      case 'read':
        return await this.#read(known)
      case 'fork':
        return await this.#fork(known)
      case 'delete':
        return await this.#delete(known)
      case 'snapshot':
        return await this.#snapshot(known)
      case 'resize':
        return await this.#move(known, 'resize', { cpu: 1 + this.#random.below(2), memory: 1 + this.#random.below(2) })
      case 'resume':
      case 'restore':
        return await this.#move(known, 'start')
      default:
        return await this.#move(known, verb)
    }
  }

  async #create() {
    this.#count('create')
    const name = `${this.#name}-${this.#made++}`
    const made = await this.#sureOf(name, '/sandbox', { name, autoStopInterval: 0, env: { WHOSE: name } })
    if (made === undefined) return
    const known = { record: made, files: new Map() }
    this.#sandboxes.push(known)
    await this.#checkIsOurs(known)
    await this.#rest(known)
  }

  /**
   * Checks that a new sandbox, even a claimed one, has the variable `WHOSE` of its create call. This must be the first command in
   * the sandbox.
   */
  async #checkIsOurs({ record }: KnownSandbox) {
    const { result } = (await this.#client.execute(record, 'echo "$WHOSE"')) ?? {}
    if (result !== undefined && result.trim() !== record.name)
      this.complaints.push(`LOST ${record.name}: it ran as ${JSON.stringify(result)}`)
    const events = await this.#client.once('GET', `/sandbox/${record.id}/events?limit=10`)
    if (JSON.stringify(events?.body ?? '').includes('Claimed from a warm pool.')) this.#count('claimed warm')
  }

  /** Repeats a create call until an answer comes. An idempotency key makes sure that only one sandbox is created. */
  async #sureOf(name: string, path: string, body: object): Promise<Record_ | undefined> {
    const { status, body: reply } = await this.#client.sure('POST', path, body, { 'idempotency-key': randomUUID() })
    if (status === 200) return reply as Record_
    // This 409 is permitted: after a kill of PostgreSQL, a paused sandbox may be `pausing` again for a moment (docs/adr/0017).
    const isUnderWay = status === 409 && JSON.stringify(reply).includes('wait until that has ended')
    if (status >= 500 || (status === 409 && !isUnderWay))
      this.complaints.push(`making ${name}: ${status} ${JSON.stringify(reply)}`)
    this.#count(`refused ${status}`)
    return undefined
  }

  async #write(known: KnownSandbox) {
    const path = `${home}/file-${this.#random.below(4)}`
    const text = randomUUID()
    const done = await this.#client.execute(
      known.record,
      `echo ${text} > ${path}.new && mv ${path}.new ${path} && echo ok`,
    )
    if (done?.result.trim() === 'ok') known.files.set(path, text)
    // The write may or may not have been performed, so the content of this file is not checked any more.
    else known.files.delete(path)
    await this.#refresh(known)
  }

  async #read(known: KnownSandbox) {
    await this.#refresh(known)
    if (known.record.state !== 'started') return
    for (const [path, text] of known.files) {
      const found = await this.#client.execute(known.record, `cat ${path}`)
      if (found === undefined) return
      if (found.result.trim() === text) continue
      // `cat` also fails in a stopped sandbox. The file counts as lost only if the sandbox is still started.
      await this.#refresh(known)
      if (known.record.state === 'started' && found.exitCode < 128) {
        this.complaints.push(`LOST ${known.record.name} ${path}: ${JSON.stringify(found)}, not ${text}`)
        known.files.delete(path)
      }
    }
  }

  async #move(known: KnownSandbox, verb: string, body?: object) {
    const answer = await this.#client.once('POST', `/sandbox/${known.record.id}/${verb}`, body)
    if (answer !== undefined && answer.status >= 400) this.#count(`refused ${answer.status}`)
    await this.#rest(known)
  }

  async #fork(known: KnownSandbox) {
    if (this.#sandboxes.length >= mostSandboxes) return
    const name = `${this.#name}-${this.#made++}`
    const files = new Map(known.files)
    const child = await this.#sureOf(name, `/sandbox/${known.record.id}/fork`, { name })
    if (child === undefined) return
    const forked = { record: child, files }
    this.#sandboxes.push(forked)
    await this.#rest(forked)
    await this.#refresh(known)
  }

  async #snapshot(known: KnownSandbox) {
    const name = `${this.#name}-snapshot-${this.#made++}`
    const answer = await this.#client.once('POST', `/sandbox/${known.record.id}/snapshot`, { name })
    await this.#rest(known)
    if (answer?.status !== 200) return
    await this.#client.sure('DELETE', `/snapshots/${name}`)
  }

  async #delete(known: KnownSandbox) {
    const { status } = await this.#client.sure('DELETE', `/sandbox/${known.record.id}`)
    if (status !== 200 && status !== 404) this.complaints.push(`delete of ${known.record.name} answered ${status}`)
    this.#forget(known)
  }

  #forget(known: KnownSandbox) {
    const at = this.#sandboxes.indexOf(known)
    if (at >= 0) this.#sandboxes.splice(at, 1)
  }

  async #refresh(known: KnownSandbox) {
    const record = await this.#client.get(known.record.id)
    if (record) known.record = record
    else {
      this.complaints.push(`LOST ${known.record.name}: there is no such sandbox any more`)
      this.#forget(known)
    }
  }

  /** Waits until no verb is in progress for the sandbox. Recovers the sandbox if it is in an error state. */
  async #rest(known: KnownSandbox) {
    const end = Date.now() + stuckAfterMs
    while (this.#sandboxes.includes(known)) {
      await this.#refresh(known)
      const { state, recoverable, errorReason, name } = known.record
      if (state === 'error') {
        this.#count('error')
        if (recoverable !== true) {
          this.complaints.push(`LOST ${name}: ${errorReason}`)
          this.#forget(known)
          return
        }
        await this.#client.once('POST', `/sandbox/${known.record.id}/recover`)
      } else if (settled.includes(state)) return
      if (Date.now() > end) {
        const events = await this.#client.once('GET', `/sandbox/${known.record.id}/events?limit=20`)
        this.complaints.push(
          `STUCK ${name} in ${state}: ${JSON.stringify(known.record)} ${JSON.stringify(events?.body)}`,
        )
        this.complaints.push(...this.#lookInto(known.record.id))
        this.#forget(known)
        return
      }
      await sleep(100)
    }
  }

  async #bringUp(known: KnownSandbox) {
    for (let attempt = 0; attempt < 5 && known.record.state !== 'started'; attempt++) {
      await this.#client.sure('POST', `/sandbox/${known.record.id}/start`)
      await this.#rest(known)
      if (!this.#sandboxes.includes(known)) return
    }
    if (known.record.state !== 'started') this.complaints.push(`STUCK ${known.record.name} does not start`)
  }
}

const choices: Record<string, readonly (readonly [number, Verb])[]> = {
  started: [
    [6, 'write'],
    [4, 'read'],
    [3, 'pause'],
    [2, 'stop'],
    [2, 'resize'],
    [2, 'fork'],
    [1, 'snapshot'],
    [1, 'archive'],
    [2, 'delete'],
  ],
  paused: [
    [6, 'resume'],
    [1, 'stop'],
    [1, 'fork'],
    [1, 'snapshot'],
    [1, 'delete'],
  ],
  stopped: [
    [6, 'start'],
    [2, 'archive'],
    [1, 'fork'],
    [1, 'snapshot'],
    [1, 'delete'],
  ],
  archived: [
    [8, 'restore'],
    [1, 'delete'],
  ],
  error: [[1, 'delete']],
}
