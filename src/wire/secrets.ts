// Messages with secrets of organizations: from control to a runner, and from the runner to its proxy (src/egress). A sandbox gets
// only placeholders. Values go from control to the proxy and are written to no disk on the way.

/** The parts of a secret with which a proxy replaces the placeholder in requests. */
export type KnownSecret = {
  placeholder: string
  value: string
  /** Names such as `api.example.com`. `*.` at the beginning stands for exactly one label. */
  hosts: readonly string[]
  /** A certificate for these hosts that sandboxes of the organization trust, and its private key. Both as PEM. */
  certificate: string
  privateKey: string
}

/** All secrets that sandboxes of one runner use. `version` grows with every change of a secret. */
export type SecretsOfRunner = {
  secrets: readonly (KnownSecret & { id: string; version: number })[]
  /** `generation` is that of the sandbox: an older list of secrets never replaces a newer one. */
  sandboxes: readonly { sandboxId: string; generation: number; secretIds: readonly string[] }[]
}

const directory = '/etc/alcove-secrets'

/** The files that a runner writes into a sandbox with secrets. */
export const trustFiles = {
  directory,
  /** The certificate of the organization's authority. */
  authority: `${directory}/authority.pem`,
  /** The certificate of the organization's authority, and the certificates of all authorities that the image trusts. */
  bundle: `${directory}/bundle.pem`,
  /** The certificates of `bundle`, as a key store of Java. */
  keyStore: `${directory}/authorities.jks`,
} as const

/**
 * The variables that tell programs which authorities to trust. A variable with the file `authority` adds to the
 * authorities that a program trusts. Every other variable replaces them.
 */
export const trustVariables: Readonly<Record<string, string>> = {
  NODE_EXTRA_CA_CERTS: trustFiles.authority,
  DENO_CERT: trustFiles.authority,
  ...Object.fromEntries(
    [
      ...['SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'PIP_CERT', 'npm_config_cafile'],
      ...['AWS_CA_BUNDLE', 'CARGO_HTTP_CAINFO', 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH', 'NIX_SSL_CERT_FILE'],
    ].map((name) => [name, trustFiles.bundle]),
  ),
  JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${trustFiles.keyStore}`,
}

/** Maximum number of hosts of one secret. */
export const mostHosts = 50
/** Maximum number of characters of a value. Servers accept 8 to 16 KiB of headers. */
export const longestValue = 8192

/** Whether a name, in lower case and without a dot at its end, is one of the hosts. */
export const isAllowedHost = (hosts: readonly string[], name: string): boolean => {
  const parent = name.slice(name.indexOf('.') + 1)
  return hosts.some(
    (host) => host === name || (host.startsWith('*.') && name.includes('.') && host.slice(2) === parent),
  )
}

/**
 * Messages to the proxy. `awaited`: the sandbox has secrets that control has not sent yet. Null: the address has no
 * sandbox.
 */
export type ToEgress =
  | { type: 'serve'; address: string }
  | { type: 'sandbox'; address: string; secrets: readonly KnownSecret[] | 'awaited' | null }

/** Messages from the proxy to the runner. `trouble`: a sentence for the timeline of the sandbox with this address. */
export type FromEgress = { type: 'serving'; port: number } | { type: 'trouble'; address: string; sentence: string }
