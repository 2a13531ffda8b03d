// Runs the proxy that puts secrets into requests of sandboxes (src/egress). Starts the proxy's process when the first sandbox
// with secrets starts, and restarts it when it ends. Tells it which secrets each sandbox address may use.
import { type ChildProcess, spawn } from 'node:child_process'
import { confined, users } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import type { FromEgress, SecretsOfRunner, ToEgress } from '#src/wire/secrets.ts'
import { give } from './dns/resolver.ts'
import { SecretStore } from './secret-store.ts'

type EgressParts = {
  /** The host's address on which the proxy listens. */
  address: string
  /** Redirects connections of sandboxes with secrets to the proxy's port. */
  lead: (port: number) => Promise<void>
  /** Adds a sentence to the timeline of a sandbox, for its owner. */
  onTrouble: (sandboxId: string, sentence: string) => void
  log: Logger
}

const startsWithinMs = 30_000
const againAfterMs = 500
const memoryMiB = 512

export class Egress {
  readonly #parts: EgressParts
  readonly #secrets = new SecretStore()
  /** Ids of the sandboxes with secrets, by the sandbox's network address. */
  readonly #sandboxes = new Map<string, string>()
  /**
   * The last message about each sandbox to the proxy's process, by the sandbox's network address. An equal message is not sent
   * again.
   */
  readonly #told = new Map<string, string>()
  #child: ChildProcess | undefined
  #serving: Promise<void> | undefined
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: EgressParts) {
    this.#parts = parts
  }

  /** Starts the proxy if it does not run. Resolves when it accepts connections. */
  serve(): Promise<void> {
    clearTimeout(this.#again)
    this.#serving ??= this.#start()
    return this.#serving
  }

  /** Sets which sandbox with secrets has the network address `address`. `undefined`: no sandbox with secrets has it any more. */
  know(address: string, sandboxId: string | undefined): void {
    if (this.#sandboxes.get(address) === sandboxId) return
    if (sandboxId === undefined) this.#sandboxes.delete(address)
    else this.#sandboxes.set(address, sandboxId)
    this.#tell(address)
  }

  /**
   * Stores secrets that control has sent. With `askedAt`, they are control's complete list, which the runner requested at that
   * time.
   */
  learn(news: SecretsOfRunner, askedAt?: number): void {
    this.#secrets.take(news, askedAt)
    for (const address of this.#sandboxes.keys()) this.#tell(address)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#again)
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  async #start(): Promise<void> {
    const { address, lead, log } = this.#parts
    if (this.#closed) throw new Error('the proxy for secrets is closed')
    await give(address)
    if (this.#closed) throw new Error('the proxy for secrets is closed')
    const options = [`--max-old-space-size=${memoryMiB}`, '--disable-warning=ExperimentalWarning']
    const [program = '', ...args] = confined({
      command: nodeCommand('src/egress/process.ts', ...options),
      uid: users.egress,
      shown: ownCode(),
      sockets: 'internet',
    })
    const child = spawn(program, args, {
      // The certificate authorities that this host trusts. Node reads them as the system's certificates.
      env: { SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt', SSL_CERT_DIR: '/etc/ssl/certs' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#child = child
    const { promise, resolve: serving, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => child.kill('SIGKILL'), startsWithinMs)
    child.on('error', (error) => log.error({ err: error }, 'the proxy for secrets failed'))
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      this.#child = undefined
      this.#serving = undefined
      reject(new Error('the proxy for secrets ended'))
      if (this.#closed) return
      log.error({ code, signal }, 'the proxy for secrets ended: starting it again')
      this.#again = setTimeout(() => void this.serve().catch(() => {}), againAfterMs).unref()
    })
    child.on('message', (word: FromEgress) => {
      if (word.type === 'trouble') return this.#noteTrouble(word)
      clearTimeout(timer)
      lead(word.port).then(serving, reject)
    })
    this.#say({ type: 'serve', address })
    this.#told.clear()
    for (const known of this.#sandboxes.keys()) this.#tell(known)
    return promise
  }

  #noteTrouble({ address, sentence }: Extract<FromEgress, { type: 'trouble' }>): void {
    const sandboxId = this.#sandboxes.get(address)
    if (sandboxId !== undefined) this.#parts.onTrouble(sandboxId, String(sentence).slice(0, 1000))
  }

  #tell(address: string): void {
    const sandboxId = this.#sandboxes.get(address)
    const secrets = sandboxId === undefined ? null : (this.#secrets.of(sandboxId) ?? 'awaited')
    const text = JSON.stringify(secrets)
    if (this.#told.get(address) === text) return
    if (secrets === null) this.#told.delete(address)
    else this.#told.set(address, text)
    this.#say({ type: 'sandbox', address, secrets })
  }

  #say(word: ToEgress): void {
    // If the child process has just ended, the message is lost. At its next start the process gets the secrets of all sandboxes.
    if (this.#child?.connected) this.#child.send(word, () => {})
  }
}
