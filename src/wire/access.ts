// The gate asks control whether a call is allowed before it forwards the call (`POST /proxy/access`, with the gate's
// service key). If control expects a call, for example to a new sandbox, it sends its answer to the gate before the
// gate asks.
import { hash } from 'node:crypto'
import type { GateOfHost } from './hosts.ts'

/**
 * A credential of the caller. If a call has several credentials, they are tried in the order of
 * docs/reference/choices.md.
 */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  /** The preview token of a sandbox. `kind` says where it was in the call: in a header, in the query or in a cookie. */
  | { kind: 'preview-header' | 'preview-query' | 'preview-cookie'; token: string }
  /**
   * An SSH token. It gives access to the paths below `/ssh/` of the toolbox, and to no other path. No other credential
   * gives access to the paths below `/ssh/` (ssh.ts).
   */
  | { kind: 'ssh'; token: string }
  /** A file URL signed with the sandbox's signing key. */
  | { kind: 'file-signature'; method: string; path: string; expires: string; signature: string }

export type AccessQuestion = {
  /** Id or name of the sandbox. For a preview, the token of a signed URL is possible too. */
  sandboxIdOrName: string
  credentials: Credential[]
  /**
   * The port of the preview that is called. Absent: the call is for the toolbox. `toolboxPort`: the call is for the
   * toolbox too, but came to the address of a signed preview.
   */
  port?: number
  /** True if the call counts as activity of the sandbox. */
  countsAsActivity: boolean
  /**
   * True if control allowed the call before and the gate asks again, because the call is still open. Such a call
   * continues after its signed URL expires, but ends if the URL is revoked. It also ends when the caller's key or token
   * expires. Some identity providers do not report that a person has lost access; then only the expiry ends the call.
   */
  wasLetIn?: boolean
}

/** Why control allowed the call: the kind of the valid credential, a signed preview URL, or a public preview. */
export type OpenedBy = Credential['kind'] | 'signed-preview' | 'public'

/**
 * The body of control's answer 200, which allows the call. If control refuses the call, its answer is an ordinary error
 * body, which the gate passes on to the caller.
 */
export type Access = {
  sandboxId: string
  organizationId: string
  /** The ticket for the gate: control's signature on what this answer allows (ticket.ts). */
  ticket: string
  /** The unix socket on which the runner of the sandbox waits for connections of gates: `unix:/path`. */
  runnerAddress: string
  /**
   * The gate on the sandbox's host. Any other gate passes the call on to this gate. Absent: `runnerAddress` is on the
   * machine of the gate that asks.
   */
  gate?: Pick<GateOfHost, 'id' | 'address'>
  /**
   * Time of the last heartbeat of the sandbox's host, if the host is silent now. A silent host may still answer gates.
   */
  silentSince?: string
  isStarted: boolean
  state: string
  /**
   * Minimum generation of the sandbox for this call: the gate waits until the runner reports this generation or a later
   * one. Absent: the gate does not wait.
   */
  leastGeneration?: number
  openedBy: OpenedBy
  /** True if the bearer token is a credential of this server, so that the gate must not forward it into the sandbox. */
  isBearerOurs: boolean
  /** True if visitors with a browser get a warning page before the preview. */
  warnsVisitors: boolean
  /**
   * The value of the header `Host` that the gate sends to the server inside the sandbox; the port of the preview is
   * added. Many development servers refuse every name except `localhost`. Absent: the preview's own host name.
   */
  hostInside?: 'localhost'
}

/** Returns the only toolbox call that a signed URL of a file allows: path and query after `/toolbox/{id}`. */
export const pathOfSignedFile = (method: string, path: string): string =>
  `${method === 'POST' ? '/files/upload-v2' : '/files/download'}?path=${encodeURIComponent(path.toWellFormed())}`

/**
 * A change of the environment variables that later processes of a sandbox get. First `unset` and `unsetValuePrefix`
 * remove variables. Then `set` sets variables.
 */
export type VariableChange = {
  set: Record<string, string>
  /** Names of variables to remove. */
  unset: readonly string[]
  /** Removes each variable whose value begins with this text, unless it is in `set`. Absent or empty: removes none. */
  unsetValuePrefix?: string
}

/** The body of `POST /proxy/env`, with which a gate asks control to change the variables of a sandbox. */
export type VariableQuestion = VariableChange & {
  /** The ticket of the call that changes the environment variables. It must allow any toolbox call. */
  ticket: string
  /**
   * The variables that processes get from the image and the server. If a caller removes one of these, control must
   * store that it is removed. A variable that a caller has set is simply deleted from the sandbox's row in the
   * database.
   */
  inherited: Record<string, string>
}

/**
 * Control's answer to `POST /proxy/env`: the generation that the sandbox got with the change. When the runner has this
 * generation or a later one, new processes get the changed variables.
 */
export type VariableAnswer = { generation: number }

/** Returns the hash of a question, for use as a cache key. No credential can be read from the hash. */
export const keyOfQuestion = (question: AccessQuestion): string => hash('sha256', JSON.stringify(question), 'base64')

/** How long a gate may cache an answer that allows a call: milliseconds from the moment at which control decided. */
export const accessKeptMs = 1000

/**
 * An answer that control sends over a gate's WebSocket (`GET /proxy/link`) before the gate asks. Control expects that
 * the gate will ask this question soon.
 */
export type AccessAhead = {
  type: 'access'
  /** Key of the question that control expects from the gate, made by `keyOfQuestion`. */
  question: string
  access: Access
  /** When control decided the answer, in milliseconds since 1970 by control's clock. */
  at: number
}

/**
 * The header in which an SDK sends its version. The toolbox adapts its answers to that version. Clients that are no SDK
 * do not send the header.
 */
export const sdkVersionHeader = 'x-daytona-sdk-version'

/**
 * The header in which an SDK sends its name. If an SDK sends its name but no version, it is older than every SDK that
 * sends a version.
 */
export const sdkSourceHeader = 'x-daytona-source'

/** Port of the toolbox. Some SDKs call the toolbox as a preview of this port. */
export const toolboxPort = 2280

/** Ports inside a sandbox that have no preview. */
export const reservedPorts: readonly number[] = [toolboxPort, 22_222, 33_333]

/** The token of a signed preview. In the host name it takes the place of the sandbox's id. */
export const signedToken = /^[a-z0-9]{16}$/
