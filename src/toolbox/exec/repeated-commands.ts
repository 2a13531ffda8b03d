// A caller that lost the answer to its command may send the command again, and the command must not run twice. The gate therefore
// stores answers by idempotency key for up to 10 minutes. A restart of the gate loses the answers, but also ends the commands.
import { createHash } from 'node:crypto'
import { otherBody } from '#src/http/idempotency-key.ts'
import { Problem } from '#src/problems.ts'

const keptMs = 10 * 60_000
/**
 * Maximum number and total bytes of the answers stored for the commands of one sandbox, so that no sandbox evicts another's
 * answers.
 */
const mostKeys = 256
const mostBytes = 256 * 1024

type Answer = { exitCode: number; result: string; oom?: true }
type RememberedCommand = {
  requestHash: string
  answer: Promise<Answer>
  bytes: number
  isOver: boolean
  /** This timer evicts the answer. An earlier eviction must clear the timer, because a pending timer keeps the answer in memory. */
  timer?: NodeJS.Timeout
}

/**
 * True if the command did not run, or its result is unknown. The caller may then run the command again with the same idempotency
 * key.
 */
const isNoOutcome = (error: unknown) => !(error instanceof Problem) || error.status === 429 || error.status >= 500

/** Length of the command's output that the error contains; 0 if the error contains none. */
const outputIn = (error: unknown) => (error instanceof Problem ? (error.fields['output']?.length ?? 0) : 0)

const hashOf = (body: unknown) => createHash('sha256').update(JSON.stringify(body)).digest('hex')

const tooLong = async (): Promise<Answer> => {
  throw new Problem('conflict', 'This command has already run. Its answer was too long to be stored.')
}

/** The answers of one sandbox's commands, by idempotency key. */
export class Answers {
  readonly #known = new Map<string, RememberedCommand>()

  /** Runs the command, or returns its stored answer if it already ran. */
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
    const made: RememberedCommand = { requestHash: hashOf(body), answer: run(), bytes: 0, isOver: false }
    this.#known.set(key, made)
    made.answer.then(
      ({ result }) => this.#settle(key, made, result.length),
      (error) => (isNoOutcome(error) ? this.#forget(key, made) : this.#settle(key, made, outputIn(error))),
    )
    return made.answer
  }

  #settle(key: string, made: RememberedCommand, bytes: number): void {
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

  /** Evicts the oldest finished answers until a new answer of `bytes` bytes fits within the limits of number and bytes. */
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

  #forget(key: string, known: RememberedCommand): void {
    if (this.#known.get(key) === known) this.#known.delete(key)
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }
}

const bySandbox = new Map<string, Answers>()

/**
 * Returns the stored answers of a sandbox's commands. Before a sandbox is added, sandboxes whose answers have all expired are
 * removed.
 */
export const answersOf = (sandboxId: string): Answers => {
  const found = bySandbox.get(sandboxId)
  if (found !== undefined) return found
  for (const [id, answers] of bySandbox) if (answers.isEmpty) bySandbox.delete(id)
  const made = new Answers()
  bySandbox.set(sandboxId, made)
  return made
}
