// Before the gate forwards a call, it asks control whether the call is allowed (`POST /proxy/access`, with the gate's service key).
// For a call that control expects, control answers before the gate asks.
import { hash } from 'node:crypto'
import type { GateOfHost } from './hosts.ts'

/**
 * A credential of the caller. If a call has several credentials, they are tried in the order of
 * docs/reference/choices.md.
 */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  /** A sandbox's preview token. `kind`: whether the call had the token in a header, in the query or in a cookie. */
  | { kind: 'preview-header' | 'preview-query' | 'preview-cookie'; token: string }
  /** An SSH token. It opens only the paths below `/ssh/` of the toolbox, and no other credential opens these paths (ssh.ts). */
  | { kind: 'ssh'; token: string }
  /** A file URL signed with the sandbox's signing key. */
  | { kind: 'file-signature'; method: string; path: string; expires: string; signature: string }

export type AccessQuestion = {
  /** Id or name of the sandbox. For a preview, the token of a signed URL may stand here instead. */
  sandboxIdOrName: string
  credentials: Credential[]
  /**
   * Port of the called preview. Absent: a toolbox call. The value `toolboxPort`: a toolbox call at the address of a signed preview.
   */
  port?: number
  /** True if the call counts as activity of the sandbox. */
  countsAsActivity: boolean
  /**
   * True if the gate asks again about an open call that control allowed before. The call outlives its signed URL, unless the URL is
   * revoked. The call ends when its key or token expires, because some identity providers do not report that a person has lost
   * access.
   */
  wasLetIn?: boolean
}

/** Why control allowed the call: the kind of the valid credential, a signed preview URL, or a public preview. */
export type OpenedBy = Credential['kind'] | 'signed-preview' | 'public'

/** The body of control's answer 200, which allows the call. A refusal is an ordinary error body, which the gate passes on. */
export type Access = {
  sandboxId: string
  organizationId: string
  /** The ticket for the gate: control's signature on what this answer allows (ticket.ts). */
  ticket: string
  /** The unix socket on which the runner of the sandbox waits for connections of gates: `unix:/path`. */
  runnerAddress: string
  /**
   * The gate on the sandbox's host, to which other gates pass the call. Absent: the sandbox's runner is on the machine of the
   * asking gate.
   */
  gate?: Pick<GateOfHost, 'id' | 'address'>
  /**
   * Time of the last heartbeat of the sandbox's host, if the host is silent now. A silent host may still answer gates.
   */
  silentSince?: string
  isStarted: boolean
  state: string
  /** The gate waits until the runner reports this generation or a later one. Absent: the gate does not wait. */
  leastGeneration?: number
  openedBy: OpenedBy
  /** True if the bearer token is a credential of this server, so that the gate must not forward it into the sandbox. */
  isBearerOurs: boolean
  /** True if visitors with a browser get a warning page before the preview. */
  warnsVisitors: boolean
  /**
   * The host name in the header `Host` that the server inside the sandbox gets; the gate adds the port. Many development servers
   * refuse all names except `localhost`. Absent: the header has the preview's own host name.
   */
  hostInside?: 'localhost'
}

/** Returns path and query, after `/toolbox/{id}`, of the only toolbox call that a signed URL of a file allows. */
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
  /**
   * Removes each variable whose value begins with this text, unless the variable is in `set`. Absent or empty: removes no variable.
   */
  unsetValuePrefix?: string
}

/** The body of `POST /proxy/env`, with which a gate asks control to change the variables of a sandbox. */
export type VariableQuestion = VariableChange & {
  /** The ticket of the call that changes the environment variables. It must be a ticket that allows all toolbox calls. */
  ticket: string
  /**
   * Variables from the image and the server. If one of these is removed, control must store that; a variable that a caller has set
   * is simply deleted.
   */
  inherited: Record<string, string>
}

/** Control's answer to `POST /proxy/env`: when the runner has this generation, new processes get the changed variables. */
export type VariableAnswer = { generation: number }

/** Returns the hash of a question, for use as a cache key. No credential can be read from the hash. */
export const keyOfQuestion = (question: AccessQuestion): string => hash('sha256', JSON.stringify(question), 'base64')

/** How long a gate may cache an answer that allows a call: milliseconds from the moment at which control decided. */
export const accessKeptMs = 1000

/** An answer that control sends before the gate asks. Control sends it over the gate's WebSocket (`GET /proxy/link`). */
export type AccessAhead = {
  type: 'access'
  /** Key of the question that control expects from the gate, made by `keyOfQuestion`. */
  question: string
  access: Access
  /** When control decided the answer, in milliseconds since 1970 by control's clock. */
  at: number
}

/** The header with an SDK's version, to which the toolbox adapts its answers. Only SDKs send this header. */
export const sdkVersionHeader = 'x-daytona-sdk-version'

/** The header with an SDK's name. Only the oldest SDKs send this header without the header of the SDK's version. */
export const sdkSourceHeader = 'x-daytona-source'

/** Port of the toolbox. Some SDKs call the toolbox as a preview of this port. */
export const toolboxPort = 2280

/** Ports inside a sandbox that have no preview. */
export const reservedPorts: readonly number[] = [toolboxPort, 22_222, 33_333]

/** The form of the token of a signed preview URL. In the host name, the token takes the place of the sandbox's id. */
export const signedToken = /^[a-z0-9]{16}$/
