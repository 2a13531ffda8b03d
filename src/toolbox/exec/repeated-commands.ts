// A command that is sent again, because its answer was lost, must not run twice. What ran is known to the gate, for a while
// and within bounds; a command does not outlive the gate either.
import { createHash } from 'node:crypto'
import { otherBody } from '#src/http/idempotency-key.ts'
import { Problem } from '#src/problems.ts'

const keptMs = 10 * 60_000
/** Each of one sandbox, so that none makes the gate forget what it knows of another. */
const mostKeys = 256
const mostBytes = 256 * 1024

type Answer = { exitCode: number; result: string; oom?: true }
type Known = {
  requestHash: string
  answer: Promise<Answer>
  bytes: number
  isOver: boolean
  /** Holds the answer too, until it is cleared. */
  timer?: NodeJS.Timeout
}

/** The outcome of something that did not run, and may be sent again. */
const isNoOutcome = (error: unknown) => !(error instanceof Problem) || error.status === 429 || error.status >= 500

/** How much of what the command wrote its refusal holds. */
const outputIn = (error: unknown) => (error instanceof Problem ? (error.fields['output']?.length ?? 0) : 0)

const hashOf = (body: unknown) => createHash('sha256').update(JSON.stringify(body)).digest('hex')

const tooLong = async (): Promise<Answer> => {
  throw new Problem('conflict', 'This command has run. Its answer was too long to be kept.')
}

/** Answers that one sandbox's commands gave to idempotency keys. */
export class Answers {
  readonly #known = new Map<string, Known>()

  /** Runs it, or answers what it answered when it ran. */
  once(key: string, body: unknown, run: () => Promise<Answer>): Promise<Answer> {
    const known = this.#known.get(key)
    if (known !== undefined) {
      if (known.requestHash !== hashOf(body)) throw otherBody()
      return known.answer
    }
    this.#makeRoom(0)
    if (this.#known.size >= mostKeys) {
      throw new Problem('rate_limited', `At most ${mostKeys} commands with an Idempotency-Key run at a time.`)
    }
    const made: Known = { requestHash: hashOf(body), answer: run(), bytes: 0, isOver: false }
    this.#known.set(key, made)
    made.answer.then(
      ({ result }) => this.#settle(key, made, result.length),
      (error) => (isNoOutcome(error) ? this.#forget(key, made) : this.#settle(key, made, outputIn(error))),
    )
    return made.answer
  }

  #settle(key: string, made: Known, bytes: number): void {
    if (bytes > mostBytes) {
      made.answer = tooLong()
      made.answer.catch(() => {})
    } else {
      this.#makeRoom(bytes)
      made.bytes = bytes
    }
    made.isOver = true
    made.timer = setTimeout(() => this.#forget(key, made), keptMs).unref()
  }

  /** The oldest go first. */
  #makeRoom(bytes: number): void {
    let kept = bytes + [...this.#known.values()].reduce((sum, known) => sum + known.bytes, 0)
    for (const [key, known] of this.#known) {
      if (kept <= mostBytes && this.#known.size < mostKeys) return
      if (!known.isOver) continue
      kept -= known.bytes
      clearTimeout(known.timer)
      this.#known.delete(key)
    }
  }

  #forget(key: string, known: Known): void {
    if (this.#known.get(key) === known) this.#known.delete(key)
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }
}

const bySandbox = new Map<string, Answers>()

/** Finds or makes the answers of a sandbox, and drops those of others that have become empty. */
export const answersOf = (sandboxId: string): Answers => {
  const found = bySandbox.get(sandboxId)
  if (found !== undefined) return found
  for (const [id, answers] of bySandbox) if (answers.isEmpty) bySandbox.delete(id)
  const made = new Answers()
  bySandbox.set(sandboxId, made)
  return made
}
