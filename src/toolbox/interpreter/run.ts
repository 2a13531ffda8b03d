// A run of code in a worker, the Python process of a context. A worker does one run after the other. After a restart of the gate,
// an earlier run may still be running. The gate waits for that run first, at most until its deadline.
import { randomUUID } from 'node:crypto'
import { constants } from 'node:os'
import { type Exit, isRefused, type Jobs } from '../agent/agent.ts'
import type { Context } from './contexts.ts'
import { lastMessage, lineBytes, MessageReader, type WorkerMessage } from './messages.ts'

export type Ending = { how: 'done' } | { how: 'timeout' } | { how: 'died'; exit: Exit }
type RunOutput = Exclude<WorkerMessage, { type: 'start' | 'done' | 'free' }>
type WithoutId<Message> = Message extends unknown ? Omit<Message, 'id'> : never
/** Receives the output of the run. A slow `Take` makes the gate read more slowly, but does not slow the run down. */
export type Take = (output: WithoutId<RunOutput> | { type: 'lost'; bytes: number }) => Promise<void>

type RunRequest = { code: string; envs: Record<string, string>; timeoutSeconds: number }

/** Time in ms between the interrupt (SIGINT) of a run at its deadline, and the kill (SIGKILL) of the worker. */
const graceMs = 2000
/** The longest time that a timer can have, in ms. A longer timeout (over 24 days) is cut to this time. */
const longestMs = 2 ** 31 - 1
const { SIGINT, SIGKILL } = constants.signals

/** Interrupts the run at its deadline. If the run has not ended `graceMs` later, kills the worker. */
class Deadline {
  readonly #jobs: Jobs
  readonly #jobId: string
  #timer: NodeJS.Timeout | undefined
  #sent: Promise<unknown> = Promise.resolve()
  hasPassed = false

  constructor(jobs: Jobs, jobId: string) {
    this.#jobs = jobs
    this.#jobId = jobId
  }

  /** Sets the deadline, in ms since 1970. */
  set(at: number): void {
    clearTimeout(this.#timer)
    const wait = Math.min(Math.max(at - Date.now(), 0), longestMs)
    this.#timer = setTimeout(() => {
      this.hasPassed = true
      this.#send(SIGINT)
      this.#timer = setTimeout(() => this.#send(SIGKILL), graceMs)
    }, wait)
  }

  #send(signal: number): void {
    // Ignore an error: the worker has already ended.
    this.#sent = this.#jobs.signal(this.#jobId, signal).catch(() => undefined)
  }

  /** Cancels the deadline. After the returned promise settles, no signal for this run can reach the next run. */
  async clear(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#sent
  }
}

/** Interval in ms at which the worker is asked whether it is free. The gate asks only after output was lost. */
const askMs = 1000

/**
 * Asks the worker whether it is free. On a full disk, the message about the end of a run may be lost. The answer may be lost too,
 * so the question is repeated. The worker answers only after all earlier requests, so any answer means that the worker is free.
 */
class Asking {
  readonly #jobs: Jobs
  readonly #jobId: string
  readonly #word = randomUUID()
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  constructor(jobs: Jobs, jobId: string) {
    this.#jobs = jobs
    this.#jobId = jobId
  }

  begin(): void {
    if (this.#isOver || this.#timer !== undefined) return
    this.#timer = setTimeout(async () => {
      // Wait until the worker's input accepts the question whether the worker is free, so that questions do not pile up. Ignore an
      // error: `follow` reports the worker's end.
      await this.#jobs
        .input(this.#jobId, Buffer.from(`\n${JSON.stringify({ ask: this.#word })}\n`))
        .catch(() => undefined)
      this.#timer = undefined
      this.begin()
    }, askMs)
  }

  isAnsweredBy(message: WorkerMessage): boolean {
    return message.type === 'free' && message.asked === this.#word
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}

const bytesInARow = 16 * 1024

type Follow = { jobs: Jobs; context: Context; offset: number; deadline: Deadline; signal?: AbortSignal }

/** Reads messages from `offset` until `take` returns true. The output may start in the middle of a line. */
const follow = async (
  { jobs, context, offset, deadline, signal }: Follow,
  take: (messages: WorkerMessage[], endOffset: number) => Promise<boolean>,
  onLost: (bytes: number) => Promise<void>,
): Promise<Ending> => {
  const reader = new MessageReader(offset > 0)
  for await (const event of jobs.attach(context.job.id, offset, signal ? { signal } : {})) {
    if (event.type === 'exit') return deadline.hasPassed ? { how: 'timeout' } : { how: 'died', exit: event }
    if (event.type === 'truncated') {
      reader.skip()
      await onLost(event.lostBytes)
    } else if (event.stream === 'stdout') {
      const isOver = await take(await readInTurns(reader, event.data), event.offset + event.data.length)
      if (isOver) return { how: deadline.hasPassed ? 'timeout' : 'done' }
    }
  }
  throw signal?.reason ?? new Error('the output of the worker ended without its exit')
}

/**
 * Reads messages in small pieces, between which the event loop does other work: hostile lines that look like messages are slow to
 * check.
 */
const readInTurns = async (reader: MessageReader, data: Buffer): Promise<WorkerMessage[]> => {
  const messages: WorkerMessage[] = []
  for (let at = 0; at < data.length; at += bytesInARow) {
    if (at > 0) await new Promise(setImmediate)
    messages.push(...reader.push(data.subarray(at, at + bytesInARow)))
  }
  return messages
}

/** Whether the worker is busy, according to its last message. */
const isBusy = async (jobs: Jobs, { job }: Context): Promise<boolean> => {
  const pieces: Buffer[] = []
  let bytes = 0
  const from = Math.max(job.startOffset, job.endOffset - lineBytes)
  for await (const event of jobs.attach(job.id, from, { follow: false })) {
    if (event.type !== 'output' || event.stream !== 'stdout') continue
    pieces.push(event.data)
    bytes += event.data.length
    while (bytes - pieces[0]!.length >= lineBytes) bytes -= pieces.shift()!.length
  }
  const last = lastMessage(Buffer.concat(pieces))
  return last !== undefined && last.id !== null && last.type !== 'done'
}

/** Waits for the end of the run that the previous gate process began, at most until the deadline of that run. */
const outwait = async (jobs: Jobs, context: Context): Promise<void> => {
  const { job } = context
  const deadline = new Deadline(jobs, job.id)
  const asking = new Asking(jobs, job.id)
  let running: string | null = null
  const take = async (messages: WorkerMessage[], endOffset: number) => {
    for (const message of messages) {
      if (asking.isAnsweredBy(message)) return true
      running = message.type === 'done' ? null : message.id
      if (message.type === 'start' && message.deadline !== null) deadline.set(message.deadline)
      if (message.type === 'done') await deadline.clear()
    }
    return running === null && endOffset >= job.endOffset
  }
  try {
    await follow({ jobs, context, offset: job.startOffset, deadline }, take, async () => asking.begin())
  } finally {
    asking.end()
    await deadline.clear()
  }
}

/** Waits until the worker is free. Returns true if the worker was busy at first: it may have ended meanwhile. */
export const outwaitOthers = async (jobs: Jobs, context: Context): Promise<boolean> => {
  const hasWaited = await isBusy(jobs, context)
  if (hasWaited) await outwait(jobs, context)
  return hasWaited
}

/**
 * Runs code in a context's worker process, which must be free. Settles when the code has ended, even if the client has
 * disconnected.
 */
export const runCode = async (
  jobs: Jobs,
  context: Context,
  { code, envs, timeoutSeconds }: RunRequest,
  take: Take,
): Promise<Ending> => {
  const runId = randomUUID()
  const at = timeoutSeconds > 0 ? Date.now() + timeoutSeconds * 1000 : null
  const deadline = new Deadline(jobs, context.job.id)
  const asking = new Asking(jobs, context.job.id)
  const broken = new AbortController()
  if (at !== null) deadline.set(at)
  // The newline at the beginning ends a request that a killed gate may have left unfinished.
  const request = `\n${JSON.stringify({ id: runId, code, envs, deadline: at })}\n`
  jobs.input(context.job.id, Buffer.from(request)).catch((error) => {
    // Ignore these errors: they mean that the worker has ended, and `follow` reports that.
    if (!['ENOENT', 'ESRCH', 'EPIPE'].some((errno) => isRefused(error, errno))) broken.abort(error)
  })
  const passOn = async (messages: WorkerMessage[]) => {
    for (const message of messages) {
      if (asking.isAnsweredBy(message)) return true
      if (message.id !== runId || message.type === 'start' || message.type === 'free') continue
      if (message.type === 'done') return true
      // An error after the deadline comes from the interrupt at the deadline, not from the code.
      if (message.type === 'error' && deadline.hasPassed) continue
      const { id: _, ...output } = message
      await take(output)
    }
    return false
  }
  try {
    const offset = context.job.endOffset
    return await follow({ jobs, context, offset, deadline, signal: broken.signal }, passOn, (bytes) => {
      asking.begin()
      return take({ type: 'lost', bytes })
    })
  } finally {
    asking.end()
    await deadline.clear()
  }
}
