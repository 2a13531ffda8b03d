// Runs the proxy for secrets, which puts secrets into requests of sandboxes (src/egress). The proxy is started when the first
// sandbox with secrets needs it. The runner sends the proxy each such sandbox's address, secrets and organization.
import { confined, users } from '#src/kit/confined.ts'
import type { Logger } from '#src/kit/log.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import type { FromEgress, SecretsOfRunner, ToEgress } from '#src/wire/secrets.ts'
import { addHostAddress } from './host-address.ts'
import { LastingProgram } from './lasting-program.ts'
import { SecretStore } from './secret-store.ts'

type EgressParts = {
  /** The host's address on which the proxy for secrets (src/egress) listens. */
  address: string
  /** Redirects connections of sandboxes with secrets to the port on which the proxy for secrets listens. */
  lead: (port: number) => Promise<void>
  /** Adds a sentence to the timeline of a sandbox, when the proxy for secrets could not serve a connection of the sandbox. */
  onTrouble: (sandboxId: string, sentence: string) => void
  log: Logger
}

/** A sandbox with secrets. Its connections count towards the limit of the organization `owner`. */
type SandboxWithSecrets = { sandboxId: string; owner: string }

const heapMiB = 512
/**
 * Limit in bytes of the writable memory of the proxy for secrets, heap included. If this limit is exceeded, the proxy ends and is
 * started again. 2 GiB are enough for all connections that the proxy accepts: TLS needs about 100 KB for each side of a connection.
 * In addition, Node reserves 512 MiB for machine code.
 */
const dataBytes = 2.5 * 1024 ** 3

const commandOfProxy = () =>
  confined({
    command: nodeCommand(
      'src/egress/process.ts',
      `--max-old-space-size=${heapMiB}`,
      '--disable-warning=ExperimentalWarning',
    ),
    uid: users.egress,
    shown: ownCode(),
    sockets: 'internet',
    limits: { data: dataBytes },
  })

export class Egress {
  readonly #parts: EgressParts
  readonly #program: LastingProgram<ToEgress, FromEgress>
  readonly #secrets = new SecretStore()
  /** The sandboxes with secrets, by the sandbox's network address. */
  readonly #sandboxes = new Map<string, SandboxWithSecrets>()
  /** The last message to the proxy for secrets about each sandbox, by network address. An equal message is not sent again. */
  readonly #told = new Map<string, string>()

  constructor(parts: EgressParts) {
    this.#parts = parts
    const { address, lead, log } = parts
    this.#program = new LastingProgram({
      name: 'the proxy for secrets',
      command: commandOfProxy,
      // The files with the certificate authorities that this host trusts. Node reads its system certificates from these files.
      env: { SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt', SSL_CERT_DIR: '/etc/ssl/certs' },
      prepare: () => addHostAddress(address),
      begin: () => this.#firstWords(),
      onServing: ({ port }) => lead(port),
      onWord: (word) => this.#noteTrouble(word),
      log,
    })
  }

  /** Starts the proxy for secrets if it does not run. Resolves when the proxy accepts connections. */
  serve(): Promise<void> {
    return this.#program.serve()
  }

  /**
   * Sets which sandbox with secrets has this network address. `undefined` means that no sandbox with secrets has the address any
   * more.
   */
  know(address: string, sandbox: SandboxWithSecrets | undefined): void {
    if (sandbox === undefined && !this.#sandboxes.has(address)) return
    if (sandbox === undefined) this.#sandboxes.delete(address)
    else this.#sandboxes.set(address, sandbox)
    this.#tell(address)
  }

  /**
   * Stores secrets that control has sent. `askedAt`: time at which the runner asked control for all secrets. If this time is given,
   * `news` has all secrets of the runner's sandboxes.
   */
  learn(news: SecretsOfRunner, askedAt?: number): void {
    this.#secrets.take(news, askedAt)
    for (const address of this.#sandboxes.keys()) this.#tell(address)
  }

  close(): Promise<void> {
    return this.#program.close()
  }

  #firstWords(): ToEgress[] {
    this.#told.clear()
    const sandboxes = [...this.#sandboxes.keys()].flatMap((address) => this.#newsAbout(address) ?? [])
    return [{ type: 'serve', address: this.#parts.address }, ...sandboxes]
  }

  #noteTrouble({ address, sentence }: Extract<FromEgress, { type: 'trouble' }>): void {
    const sandbox = this.#sandboxes.get(address)
    if (sandbox !== undefined) this.#parts.onTrouble(sandbox.sandboxId, String(sentence).slice(0, 1000))
  }

  #tell(address: string): void {
    const news = this.#newsAbout(address)
    if (news !== undefined) this.#program.say(news)
  }

  /**
   * Returns the message for the proxy for secrets about the sandbox at this address, and stores the message as sent. Undefined if
   * the last message was equal.
   */
  #newsAbout(address: string): ToEgress | undefined {
    const sandbox = this.#sandboxes.get(address)
    const word: ToEgress =
      sandbox === undefined
        ? { type: 'gone', address }
        : {
            type: 'sandbox',
            address,
            owner: sandbox.owner,
            secrets: this.#secrets.of(sandbox.sandboxId) ?? 'awaited',
          }
    const text = JSON.stringify(word)
    if (this.#told.get(address) === text) return undefined
    if (sandbox === undefined) this.#told.delete(address)
    else this.#told.set(address, text)
    return word
  }
}
