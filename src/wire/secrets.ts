// Messages with secrets of organizations, from control through the runner to its proxy for secrets (src/egress). On this way, no
// program writes the value of a secret to a disk. A sandbox gets only a placeholder.

/**
 * The fields of a secret that the proxy for secrets needs to replace the placeholder in a sandbox's request by the
 * value.
 */
export type KnownSecret = {
  placeholder: string
  value: string
  /** The hosts that may get the value, such as `api.example.com`. `*.` at the start stands for exactly one label. */
  hosts: readonly string[]
  /**
   * A certificate for the hosts in `hosts`, and its private key, both as PEM. Sandboxes of the organization trust the
   * certificate.
   */
  certificate: string
  privateKey: string
}

/** Secrets that the sandboxes of one runner use. The `version` of a secret grows each time that the secret is changed. */
export type SecretsOfRunner = {
  secrets: readonly (KnownSecret & { id: string; version: number })[]
  /**
   * Which secrets each sandbox uses. A runner that already has a sandbox's secrets for a newer `generation` of the sandbox ignores
   * the entry.
   */
  sandboxes: readonly { sandboxId: string; generation: number; secretIds: readonly string[] }[]
}

const directory = '/etc/alcove-secrets'

/** Files with which a sandbox trusts the proxy for secrets. A runner writes the files. */
export const trustFiles = {
  directory,
  /** File with the certificate of the organization's authority. */
  authority: `${directory}/authority.pem`,
  /** File with the certificates of the organization's authority and of all authorities that the image trusts. */
  bundle: `${directory}/bundle.pem`,
  /** A key store of Java with the certificates of the organization's authority and of all authorities that the image trusts. */
  keyStore: `${directory}/authorities.jks`,
} as const

/**
 * Environment variables that name a file with certificate authorities. Node.js and Deno add the file's authorities to their own, so
 * their file has only the organization's authority. Other programs trust only the file, so their file has all authorities.
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
/** Maximum number of characters of a secret's value. Many servers refuse requests whose headers exceed 8 to 16 KiB. */
export const longestValue = 8192

/** Whether one of `hosts`, which may begin with `*.`, matches `name`, a host name in lower case without a final dot. */
export const isAllowedHost = (hosts: readonly string[], name: string): boolean => {
  const parent = name.slice(name.indexOf('.') + 1)
  return hosts.some(
    (host) => host === name || (host.startsWith('*.') && name.includes('.') && host.slice(2) === parent),
  )
}

/** Messages from the runner to the proxy for secrets. */
export type ToEgress =
  | { type: 'serve'; address: string }
  /** `owner`: the organization for which the sandbox's connections count. `secrets`: `awaited` until control sends them. */
  | { type: 'sandbox'; address: string; owner: string; secrets: readonly KnownSecret[] | 'awaited' }
  /** Tells the proxy that the sandbox with this address has ended, or has no secrets any more. */
  | { type: 'gone'; address: string }

/**
 * Messages from the proxy for secrets to the runner. `trouble`: a sentence for the timeline of the sandbox with this
 * address.
 */
export type FromEgress = { type: 'serving'; port: number } | { type: 'trouble'; address: string; sentence: string }
