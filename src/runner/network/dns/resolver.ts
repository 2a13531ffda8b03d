// Runs Alcove's resolver for the runner. Starts the resolver's process when the first list of domains is applied, and restarts
// it when it ends. Opens addresses in the firewall when the process requests that.
import { type ChildProcess, spawn } from 'node:child_process'
import { isIPv4 } from 'node:net'
import { confined, users } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { Ports } from '../ruleset.ts'
import type { FromResolver, ToResolver } from './words.ts'

type ResolverParts = {
  /** The host's address on which the resolver listens. No other program uses this address. */
  address: string
  upstreams: readonly string[]
  /** Redirects the DNS questions of sandboxes to the resolver's ports. */
  lead: (ports: Ports) => Promise<void>
  /**
   * Opens addresses in the firewall for a sandbox, if its policy allows them and they are not closed to all sandboxes. Returns
   * the opened addresses.
   */
  open: (sandbox: string, name: string, addresses: readonly string[], seconds: number) => Promise<readonly string[]>
  log: Logger
}

const startsWithinMs = 30_000
const againAfterMs = 500
const memoryMiB = 96
const mostAddresses = 64

export const give = (address: string) => runCommand(['ip', 'addr', 'replace', `${address}/32`, 'dev', 'lo'])

export const takeBack = (address: string) =>
  runCommand(['ip', 'addr', 'del', `${address}/32`, 'dev', 'lo']).then(
    () => {},
    () => {},
  )

const isOpening = (word: FromResolver) =>
  word.type === 'open' &&
  isIPv4(word.sandbox) &&
  word.addresses.length <= mostAddresses &&
  word.addresses.every((address) => isIPv4(address))

export class Resolver {
  readonly #parts: ResolverParts
  readonly #domains = new Map<string, readonly string[]>()
  #child: ChildProcess | undefined
  #serving: Promise<void> | undefined
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: ResolverParts) {
    this.#parts = parts
  }

  /** Starts the resolver if it does not run. Resolves when it answers questions. */
  serve(): Promise<void> {
    clearTimeout(this.#again)
    this.#serving ??= this.#start()
    return this.#serving
  }

  /** Sets the domains that a sandbox may ask for. With `null`, the resolver no longer answers this sandbox. */
  allow(sandbox: string, domains: readonly string[] | null): void {
    if (domains === null && !this.#domains.has(sandbox)) return
    if (domains === null) this.#domains.delete(sandbox)
    else this.#domains.set(sandbox, domains)
    this.#say({ type: 'sandbox', sandbox, domains })
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
    const { address, upstreams, lead, log } = this.#parts
    if (this.#closed) throw new Error('the resolver is closed')
    await give(address)
    if (this.#closed) throw new Error('the resolver is closed')
    const [program = '', ...args] = confined({
      command: nodeCommand('src/runner/network/dns/process.ts', `--max-old-space-size=${memoryMiB}`),
      uid: users.resolver,
      shown: ownCode(),
      sockets: 'internet',
    })
    const child = spawn(program, args, { env: {}, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child = child
    const { promise, resolve: serving, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => child.kill('SIGKILL'), startsWithinMs)
    child.on('error', (error) => log.error({ err: error }, 'the resolver of sandboxes with a list of domains failed'))
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      this.#child = undefined
      this.#serving = undefined
      reject(new Error('the resolver of sandboxes with a list of domains ended'))
      if (this.#closed) return
      log.error({ code, signal }, 'the resolver of sandboxes with a list of domains ended: starting it again')
      this.#again = setTimeout(() => void this.serve().catch(() => {}), againAfterMs).unref()
    })
    child.on('message', (word: FromResolver) => {
      if (word.type === 'open') return void this.#open(word)
      clearTimeout(timer)
      lead({ udp: word.udp, tcp: word.tcp }).then(serving, reject)
    })
    this.#say({ type: 'serve', address, upstreams })
    for (const [sandbox, domains] of this.#domains) this.#say({ type: 'sandbox', sandbox, domains })
    return promise
  }

  async #open(word: Extract<FromResolver, { type: 'open' }>): Promise<void> {
    const { sandbox, name, seconds } = word
    const addresses = isOpening(word)
      ? await this.#parts.open(sandbox, name, word.addresses, seconds).catch((error: unknown) => {
          this.#parts.log.warn({ err: error, sandbox, name }, 'the addresses of a name could not be opened')
          return null
        })
      : null
    this.#say({ type: 'opened', id: word.id, addresses })
  }

  #say(word: ToResolver): void {
    // If the child process has just ended, the message is lost. At its next start the process gets the domains of all sandboxes.
    if (this.#child?.connected) this.#child.send(word, () => {})
  }
}
