// How a machine joins a server over the network. It exchanges a token once for two certificates of the server's own authority, one
// for its runner and one for its gate. On later TLS connections, both sides show a certificate of this authority.

/** The domain of the names in certificates of hosts. No DNS server knows these names. */
const domain = 'hosts.alcove.internal'

/** The name in the certificate of every control process. */
export const controlHostName = `control.${domain}`

/** The programs of a host that have certificates. */
export const hostPrograms = ['runner', 'gate'] as const

export type HostProgram = (typeof hostPrograms)[number]

/** Returns the name in the certificate of a program of a host. `runnerId`: the id of the host's runner. */
export const hostNameOf = (program: HostProgram, runnerId: string): string => `${runnerId}.${program}.${domain}`

/** Returns the program and the runner id in a name that `hostNameOf` made. Undefined for any other name. */
export const readHostName = (name: string): { program: HostProgram; runnerId: string } | undefined => {
  const [, runnerId, program] =
    /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.(runner|gate)\.hosts\.alcove\.internal$/.exec(name) ?? []
  return runnerId === undefined ? undefined : { program: program as HostProgram, runnerId }
}

/**
 * Reads from a token of a runner the SHA-256 of the authority's certificate (DER) as base64url. Undefined: the token's server lets
 * no machine join over the network.
 */
export const authorityHashIn = (token: string): string | undefined =>
  /^alr_[0-9a-f]+\.([A-Za-z0-9_-]{43})$/.exec(token)?.[1]

/** Body of `POST /runners/join`. Each key is a public key as PEM (SubjectPublicKeyInfo, EC P-256). */
export type JoinQuestion = { token: string; version: string; keys: Record<HostProgram, string> }

/** Body of `POST /runners/certificates`, with which a host that has joined renews its certificates. */
export type RenewQuestion = { version: string; keys: Record<HostProgram, string> }

/** Answer to a `JoinQuestion` or a `RenewQuestion`. Every certificate is PEM. */
export type HostCertificates = {
  runnerId: string
  regionId: string
  /** The certificate of the server's authority. */
  authority: string
  certificates: Record<HostProgram, string>
  /** Seconds after which the host should renew its certificates. */
  renewAfterSeconds: number
}

/** Id of every gate on the machine of the server. No runner of another machine may have this id. */
export const localGateId = 'local'

/**
 * The gate through which clients reach the sandboxes of a runner. The runner tells control in its message `hello` which gate this
 * is.
 */
export type GateOfHost = {
  /** Id of the runner on the gate's machine. The name in the gate's certificate contains this id. */
  id: string
  /** `host:port` at which the gate listens for other gates. Absent: the gate does not listen for other gates. */
  address?: string
  /** The URL at which clients reach this gate directly. Absent: clients use the server's `proxyUrl`. */
  publicUrl?: string
}
