// Runs skopeo, without privileges, to ask registries and to read image archives.
//
// Callers choose the registry, and a registry may redirect skopeo to any address. skopeo's network therefore cannot reach the host,
// private or link-local addresses. skopeo uses the host's network only for registries that the operator has named.
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { users } from '#src/kit/confined.ts'
import { isPublicAddress } from '#src/kit/networks.ts'
import type { Mirror } from '#src/kit/registry-mirrors.ts'
import { readChallenges, trustedRealm } from '#src/kit/registry-realm.ts'
import type { RegistryLogin } from '#src/wire/runner-link.ts'
import { type Egress, openEgress, type PublicNetwork } from './egress.ts'
import { ImageFailed, Unreached } from './image-failed.ts'
import { formatReference, isThisMachine, type Reference } from './reference.ts'
import { type Job, type Outcome, runJob, type View } from './workshop.ts'

export type RegistrySettings = {
  /**
   * Registries (host:port) that are contacted without encryption. A registry on this machine can be used only if it is in this
   * list.
   */
  plainRegistries: readonly string[]
  /** A file with credentials, in the format of containers-auth.json(5). */
  authFile: string | undefined
  /** Registries that images may come from. Absent: any. */
  registries?: readonly string[] | undefined
  /** Registries that are reached through the host's network. These registries may therefore have private addresses. */
  privateRegistries?: readonly string[] | undefined
  /** Mirrors of registries. They get a request before the registry itself. */
  mirrors?: readonly Mirror[] | undefined
  publicNetwork: () => Promise<PublicNetwork>
}

export type Asking = {
  scratch: string
  timeoutMs: number
  largestFileBytes: number
  signal?: AbortSignal | undefined
  watch?: (pid: number) => Promise<void>
  /** Credentials for the registry. Absent: the operator's credentials are used. */
  login?: RegistryLogin | undefined
}

const credentialsAt = '/run/credentials.json'

/**
 * Whether the operator has named the registry in the settings. The operator trusts such a registry not to redirect to a
 * forbidden address.
 */
export const isOfOperator = (
  { registry }: Pick<Reference, 'registry'>,
  { plainRegistries, privateRegistries = [] }: RegistrySettings,
): boolean => plainRegistries.includes(registry) || privateRegistries.includes(registry)

/**
 * Whether the registry is this machine or a private IP address. Host names are not checked here: the download's network blocks
 * private addresses.
 */
export const isPrivate = (reference: Pick<Reference, 'registry'>): boolean => {
  const { registry } = reference
  const host = /^\[(.*)\]/.exec(registry)?.[1] ?? registry.split(':')[0] ?? ''
  return isThisMachine(reference) || (isIP(host) !== 0 && !isPublicAddress(host))
}

export const checkMayAsk = (reference: Reference, settings: RegistrySettings): void => {
  const { registry } = reference
  if (isOfOperator(reference, settings)) return
  if (settings.registries !== undefined && !settings.registries.includes(registry))
    throw new ImageFailed('refused', `Images from the registry ${registry} are not allowed here.`)
  checkIsPublic(reference, settings)
}

/** Throws for a registry at a private address, unless the operator allows that registry. */
export const checkIsPublic = (reference: Reference, settings: RegistrySettings): void => {
  const { registry } = reference
  if (isOfOperator(reference, settings) || !isPrivate(reference)) return
  throw new ImageFailed(
    'refused',
    `The registry ${registry} is not on the public Internet; the operator of this server has to allow it (ALCOVE_PRIVATE_REGISTRIES).`,
  )
}

/**
 * Prints the manifest, a zero byte and the configuration. If skopeo cannot get the configuration, the caller requests the
 * configuration again to get the error message.
 */
const inspectTwice = `
inspect() { skopeo --debug --insecure-policy inspect --raw "$@"; }
inspect "$@" && printf '\\0' && { inspect --config "$@" || :; }`

export class Skopeo {
  readonly #settings: RegistrySettings & { answerTimeoutMs: number }

  constructor(settings: RegistrySettings & { answerTimeoutMs: number }) {
    this.#settings = settings
  }

  /** Returns the exact bytes of a manifest. */
  manifest(reference: Reference, asking: Asking): Promise<Buffer> {
    return this.#inspect(reference, asking, ['--raw'])
  }

  /**
   * Returns the manifest's exact bytes and, if skopeo finds it, the configuration for this platform. The caller must check that
   * manifest and configuration belong together.
   */
  async manifestAndConfig(reference: Reference, asking: Asking): Promise<{ manifest: Buffer; config?: Buffer }> {
    const argv = ['sh', '-c', inspectTwice, 'sh', ...this.#registryOptions(reference, '', asking), sourceOf(reference)]
    const both = await this.#run(argv, [], { ...asking, reference })
    const end = both.indexOf(0)
    return end < 0 ? { manifest: both } : { manifest: both.subarray(0, end), config: both.subarray(end + 1) }
  }

  /** Returns the exact bytes of the configuration of the image for this platform. */
  config(reference: Reference, asking: Asking): Promise<Buffer> {
    return this.#inspect(reference, asking, ['--config', '--raw'])
  }

  /**
   * Downloads an image: writes an OCI layout to `<directory>/layout` and its layers, manifest and configuration to
   * `<directory>/blobs`.
   */
  async download(reference: Reference, directory: string, asking: Asking): Promise<void> {
    const options = this.#registryOptions(reference, 'src-', asking)
    await this.#copy(sourceOf(reference), options, directory, [], { ...asking, reference })
  }

  /** Reads an image from a file or directory of this host. */
  async read(transport: string, path: string, directory: string, asking: Asking): Promise<void> {
    const views = [{ from: path, at: '/source' }]
    await this.#copy(`${transport}:/source`, [], directory, views, asking)
  }

  async #inspect(reference: Reference, asking: Asking, what: readonly string[]): Promise<Buffer> {
    const argv = ['skopeo', '--debug', '--insecure-policy', 'inspect', ...what]
    const options = this.#registryOptions(reference, '', asking)
    return this.#run([...argv, ...options, sourceOf(reference)], [], { ...asking, reference })
  }

  async #copy(
    from: string,
    options: readonly string[],
    directory: string,
    views: readonly View[],
    running: Running,
  ): Promise<void> {
    const argv = [
      ...['skopeo', '--debug', '--insecure-policy', '--tmpdir', '/work/tmp', 'copy', '--quiet', '--remove-signatures'],
      // umoci can unpack only gzip. skopeo recompresses layers of other formats during the copy; gzip layers stay unchanged.
      ...['--dest-compress-format', 'gzip'],
      ...[...options, '--dest-shared-blob-dir', '/work/blobs', from, 'oci:/work/layout:image'],
    ]
    await this.#run(argv, [{ from: directory, at: '/work', writable: true }, ...views], running)
  }

  /**
   * Asks the registry, without a password, which server wants the organization's password. Throws if this server must not get the
   * password (`kit/registry-realm.ts`). A hostile registry may name a different server when skopeo asks. The registry gains nothing
   * by that: it could ask for the password itself.
   */
  async checkRealm(reference: Reference, asking: Asking & { login: RegistryLogin }): Promise<void> {
    const { registry } = reference
    const { host } = asking.login
    const isPlain = this.#settings.plainRegistries.includes(registry)
    const url = `${isPlain ? 'http' : 'https'}://${host === 'docker.io' ? 'registry-1.docker.io' : registry}/v2/`
    const argv = [
      ...['curl', '--disable', '--silent', '--globoff', '--proto', '=http,https', '--user-agent', 'alcove'],
      ...['--max-time', String(Math.ceil(asking.timeoutMs / 1000)), '--max-filesize', '1048576'],
      ...['--dump-header', '-', '--output', '/dev/null', '--', url],
    ]
    const complain = () => new ImageFailed('unreachable', `The registry ${registry} does not answer.`)
    const { login: _login, ...open } = asking
    const head = await this.#run(argv, [], { ...open, reference, complain, isOpen: true })
    const realms = [...head.toString('latin1').matchAll(/^www-authenticate:(.*)$/gim)]
      .flatMap(([, header = '']) => readChallenges(header))
      .flatMap(({ scheme, parameters }) => (scheme === 'bearer' ? [parameters['realm'] ?? ''] : []))
    if (realms.every((realm) => trustedRealm(host, realm, isPlain) !== undefined)) return
    throw new ImageFailed(
      'refused',
      `The registry ${registry} asks for this organization’s password at a server of another domain, or without encryption. The password was not sent.`,
    )
  }

  #registryOptions({ registry }: Reference, prefix: 'src-' | '', { login }: Asking): string[] {
    const { plainRegistries, authFile } = this.#settings
    return [
      ...(plainRegistries.includes(registry) ? [`--${prefix}tls-verify=false`] : []),
      ...(login === undefined && authFile === undefined ? [] : [`--${prefix}authfile`, credentialsAt]),
    ]
  }

  /**
   * Returns skopeo's credentials file (containers-auth.json(5)). If the organization's credentials are used, the file does not
   * contain the operator's credentials.
   */
  async #credentialsFor({ reference, login, isOpen }: Running): Promise<Job['secret']> {
    const { authFile } = this.#settings
    if (reference === undefined || isOpen) return undefined
    if (login === undefined)
      return authFile === undefined ? undefined : { at: credentialsAt, text: await readFile(authFile, 'utf8') }
    const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64')
    return { at: credentialsAt, text: JSON.stringify({ auths: { [reference.registry]: { auth } } }) }
  }

  async #networkFor(reference: Reference | undefined, scratch: string): Promise<Egress> {
    if (reference === undefined) return { of: 'none', views: [], [Symbol.asyncDispose]: async () => {} }
    return openEgress(isOfOperator(reference, this.#settings), this.#settings, scratch)
  }

  async #run(argv: readonly string[], views: readonly View[], running: Running): Promise<Buffer> {
    const { scratch, timeoutMs, largestFileBytes, signal, watch, reference, complain = complaintOf } = running
    await using network = await this.#networkFor(reference, scratch)
    const mayNotTell = reference !== undefined && !isOfOperator(reference, this.#settings)
    const begun = performance.now()
    const { answerTimeoutMs } = this.#settings
    const unreached = (cause?: unknown) =>
      new Unreached(`registry ${reference?.registry ?? ''}`, { begun, answerTimeoutMs }, { cause })
    const outcome = await runJob(scratch, {
      argv,
      views: [...views, ...network.views],
      ids: { base: users.fetcher, count: 1 },
      network: network.of,
      secret: await this.#credentialsFor(running),
      largestFileBytes,
      timeoutMs,
      tookTooLong: (stderr) => {
        // If a registry answers 429, skopeo prints a message, waits and retries by itself. If `stderr` contains this message, these
        // waits caused the timeout.
        if (saysToWait.test(stderr)) return mustWait(reference?.registry ?? '')
        if (mayNotTell) return unreached()
        return new ImageFailed(
          'took-too-long',
          `The image was not downloaded within ${Math.round(timeoutMs / 1000)} s.`,
        )
      },
      signal,
      ...(watch === undefined ? {} : { watch }),
    })
    if (outcome.exitCode !== 0) {
      const complaint = complain(outcome, running)
      throw mayNotTell && complaint.failure === 'unreachable' ? unreached(complaint.cause) : complaint
    }
    return outcome.stdout
  }
}

type Running = Asking & {
  reference?: Reference
  /** True if no credentials are sent to the registry. */
  isOpen?: boolean
  complain?: (outcome: Outcome, running: Running) => ImageFailed
}

const sourceOf = (reference: Reference) => `docker://${formatReference(reference)}`

type Complaint = readonly [
  says: RegExp,
  failure: ImageFailed['failure'],
  sentence: (name: string, host: string, hasAccount: boolean) => string,
]

/** What skopeo prints if the connection ended before all data was received, and the sentence for the caller. */
const broken: Complaint = [
  /unexpected EOF|connection reset|broken pipe/,
  'unreachable',
  (_, host) => `The connection to the registry ${host} broke.`,
]

/** What skopeo prints before it waits because the registry has answered 429. skopeo prints this message only with `--debug`. */
const saysToWait = /Too many requests to \S+: sleeping|toomanyrequests|too many requests/i

const mustWait = (host: string, options?: ErrorOptions) =>
  new ImageFailed(
    'refused',
    `The registry ${host} wants us to wait: too many requests. The operator of this server may give it credentials (ALCOVE_REGISTRY_AUTH) or a mirror (ALCOVE_REGISTRY_MIRRORS).`,
    options,
  )

/** The sentence for the caller for each known error output of skopeo. skopeo's exit code is 1 for every error. */
const complaints: readonly Complaint[] = [
  [
    /manifest unknown|name unknown|not known to registry|status 404/,
    'not-found',
    (name) => `There is no image ${name}.`,
  ],
  [
    /unauthorized|authentication required|access .*denied|denied:|status 40[13]/i,
    'refused',
    (name, _host, hasAccount) =>
      `There is no image ${name}, or ${hasAccount ? 'the registry does not show it to the account of this organization' : 'its registry wants credentials: add your account with POST /docker-registry'}.`,
  ],
  [/no space left|disk quota/i, 'no-room', () => 'The disk that the runner keeps images on is full.'],
  [/file too large/i, 'too-large', () => 'A layer of the image is larger than an image may be.'],
  [
    /digest did not match|does not match (?:digest|expected)|error verifying|unexpected (?:end|EOF)|invalid (?:checksum|character)|gzip:/i,
    'corrupted',
    (name) => `The image ${name} is damaged: the downloaded data does not match its digest.`,
  ],
  [
    /gave HTTP response to HTTPS|not look like a TLS handshake/,
    'refused',
    (_, host) => `The registry ${host} does not speak HTTPS.`,
  ],
  [/x509|certificate/i, 'refused', (_, host) => `The registry ${host} has a certificate that is not trusted here.`],
  [
    /no such host|lookup |connection re|timeout|no route|unreachable|TLS|deadline|EOF|pinging|status 5\d\d|misbehaving/i,
    'unreachable',
    (_, host) => `The registry ${host} does not answer.`,
  ],
]

const complaintOf = (outcome: Outcome, { reference, login }: Running): ImageFailed => {
  const lines = outcome.stderr.split('\n')
  const stderr = lines.filter((line) => !line.includes('level=debug') || saysToWait.test(line)).join('\n')
  // A registry's error may repeat the credentials that it received. If any were sent, skopeo's output is not logged.
  const told = login === undefined ? stderr.trim().slice(-2000) : 'skopeo failed; what it said is not kept'
  const cause = new Error(told || 'skopeo failed')
  const name = reference === undefined ? 'file' : formatReference(reference)
  if (saysToWait.test(stderr)) return mustWait(reference?.registry ?? '', { cause })
  const known = reference === undefined ? complaints : [broken, ...complaints]
  const found = known.find(([says]) => says.test(stderr))
  if (found === undefined) return new ImageFailed('failed', `The image ${name} could not be read.`, { cause })
  return new ImageFailed(found[1], found[2](name, reference?.registry ?? '', login !== undefined), { cause })
}
