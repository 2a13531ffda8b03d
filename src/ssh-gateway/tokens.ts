// Asks control whether SSH tokens are valid. Open connections with one token share an answer for a second. A sign-in uses no
// earlier answer, but joins a question that control has not answered yet.
import { hash } from 'node:crypto'
import { Pool } from 'undici'
import { readWhole } from '#src/kit/read-whole.ts'
import { sshToken } from '#src/wire/ssh.ts'

/** The sandbox of a token. `isOver`: the sandbox has ended, so its SSH sessions must end too. */
export type Opened = { sandboxId: string; expiresAt: number; isOver: boolean; state: string }

const keptMs = 1000
const mostKept = 4096
/** Maximum number of pending questions to control. A further question fails as if control did not answer. */
const mostQuestions = 64
const answerBytes = 16 * 1024
const answerMs = 5000

const statesOver = new Set([
  'stopping',
  'stopped',
  'archiving',
  'archived',
  'destroying',
  'destroyed',
  'error',
  'build_failed',
])

/** Control did not answer, so it is not known whether the token is valid. */
export class ControlAway extends Error {
  override name = 'ControlAway'
}

type Answer = { valid?: unknown; sandboxId?: unknown; state?: unknown; expiresAt?: unknown } | null

const readAnswer = (text: string): Opened | undefined => {
  const answer = JSON.parse(text) as Answer
  if (answer?.valid !== true) return undefined
  const { sandboxId, state, expiresAt } = answer
  if (typeof sandboxId !== 'string' || typeof state !== 'string' || typeof expiresAt !== 'string') {
    throw new Error('control answered something else than a validation')
  }
  return { sandboxId, state, isOver: statesOver.has(state), expiresAt: Date.parse(expiresAt) }
}

export class Tokens implements AsyncDisposable {
  readonly #control: Pool
  readonly #key: string
  readonly #kept = new Map<string, { at: number; isPending: boolean; answer: Promise<Opened | undefined> }>()
  #questions = 0

  constructor({ controlUrl, key }: { controlUrl: URL; key: string }) {
    this.#control = new Pool(controlUrl, { connections: 16, headersTimeout: answerMs, bodyTimeout: answerMs })
    this.#key = key
  }

  /**
   * Finds the sandbox of a valid token. `mayBeKept`: an answer of the last second may be used. Throws ControlAway if control does
   * not answer.
   */
  async find(token: string, { mayBeKept = false } = {}): Promise<Opened | undefined> {
    if (!sshToken.test(token)) return undefined
    const name = hash('sha256', token, 'base64')
    const now = performance.now()
    const kept = this.#kept.get(name)
    if (kept?.isPending || (mayBeKept && kept !== undefined && now - kept.at < keptMs)) return await kept.answer
    const asked = { at: now, isPending: true, answer: this.#ask(token) }
    const settle = () => {
      asked.isPending = false
    }
    asked.answer.then(settle, settle)
    this.#kept.delete(name)
    this.#kept.set(name, asked)
    if (this.#kept.size > mostKept) this.#kept.delete(this.#kept.keys().next().value!)
    return await asked.answer
  }

  async #ask(token: string): Promise<Opened | undefined> {
    if (this.#questions >= mostQuestions) throw new ControlAway('too many tokens are asked about at once')
    this.#questions += 1
    try {
      const { statusCode, body } = await this.#control.request({
        method: 'GET',
        path: `/api/sandbox/ssh-access/validate?token=${token}`,
        headers: { authorization: `Bearer ${this.#key}` },
      })
      const text = (await readWhole(body, answerBytes, () => new Error('control answered too much'))).toString()
      if (statusCode !== 200) throw new Error(`control answered ${statusCode}`)
      return readAnswer(text)
    } catch (cause) {
      throw new ControlAway('control does not answer', { cause })
    } finally {
      this.#questions -= 1
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#control.destroy()
  }
}
