// Starts Alcove's DNS resolver when a sandbox first needs it: a sandbox with allowed domains, or with all traffic blocked. Opens
// addresses in the firewall when the resolver requests it.
import { isIPv4 } from 'node:net'
import { confined, users } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { addHostAddress } from '../host-address.ts'
import { LastingProgram } from '../lasting-program.ts'
import type { Ports } from '../ruleset.ts'
import type { FromResolver, ToResolver } from './words.ts'

type ResolverParts = {
  /** The host's address on which the resolver listens. The address is in the range of the sandboxes' addresses. */
  address: string
  upstreams: readonly string[]
  /** Redirects DNS questions to the resolver's ports, for all sandboxes with a list of domains or with all traffic blocked. */
  lead: (ports: Ports) => Promise<void>
  /**
   * If the sandbox's policy allows `name`, opens `addresses` in the firewall, except addresses in closed networks. Returns the
   * opened addresses.
   */
  open: (sandbox: string, name: string, addresses: readonly string[], seconds: number) => Promise<readonly string[]>
  log: Logger
}

const memoryMiB = 96
const mostAddresses = 64

const commandOfResolver = () =>
  confined({
    command: nodeCommand('src/runner/network/dns/process.ts', `--max-old-space-size=${memoryMiB}`),
    uid: users.resolver,
    shown: ownCode(),
    sockets: 'internet',
  })

const isOpening = (word: FromResolver) =>
  word.type === 'open' &&
  isIPv4(word.sandbox) &&
  word.addresses.length <= mostAddresses &&
  word.addresses.every((address) => isIPv4(address))

export class Resolver {
  readonly #parts: ResolverParts
  readonly #program: LastingProgram<ToResolver, FromResolver>
  readonly #domains = new Map<string, readonly string[]>()

  constructor(parts: ResolverParts) {
    this.#parts = parts
    const { address, lead, log } = parts
    this.#program = new LastingProgram({
      name: 'the resolver of sandboxes with a list of domains',
      command: commandOfResolver,
      prepare: () => addHostAddress(address),
      begin: () => this.#firstWords(),
      onServing: ({ udp, tcp }) => lead({ udp, tcp }),
      onWord: (word) => void this.#open(word),
      log,
    })
  }

  /** Starts the resolver if it does not run. The promise resolves when the resolver answers questions. */
  serve(): Promise<void> {
    return this.#program.serve()
  }

  /** Sets the domains that a sandbox may ask for. With `null`, the resolver stops answering this sandbox. */
  allow(sandbox: string, domains: readonly string[] | null): void {
    if (domains === null && !this.#domains.has(sandbox)) return
    if (domains === null) this.#domains.delete(sandbox)
    else this.#domains.set(sandbox, domains)
    this.#program.say({ type: 'sandbox', sandbox, domains })
  }

  close(): Promise<void> {
    return this.#program.close()
  }

  #firstWords(): ToResolver[] {
    const { address, upstreams } = this.#parts
    const sandboxes = [...this.#domains].map(([sandbox, domains]) => ({ type: 'sandbox' as const, sandbox, domains }))
    return [{ type: 'serve', address, upstreams }, ...sandboxes]
  }

  async #open(word: Extract<FromResolver, { type: 'open' }>): Promise<void> {
    const { sandbox, name, seconds } = word
    const addresses = isOpening(word)
      ? await this.#parts.open(sandbox, name, word.addresses, seconds).catch((error: unknown) => {
          this.#parts.log.warn({ err: error, sandbox, name }, 'the addresses of a name could not be opened')
          return null
        })
      : null
    this.#program.say({ type: 'opened', id: word.id, addresses })
  }
}
