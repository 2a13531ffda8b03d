// The gate asks control whether a call is allowed before it forwards the call (`POST /proxy/access`, with the gate's
// service key). Control also sends answers to the gate before the gate asks.
import { hash } from 'node:crypto'

/**
 * A credential of the caller. If a call has several credentials, they are tried in the order of
 * docs/reference/choices.md.
 */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  /** The preview token of a sandbox; `kind` says where the call carried it. */
  | { kind: 'preview-header' | 'preview-query' | 'preview-cookie'; token: string }
  /** An SSH token. It opens the calls below `/ssh/` of the toolbox, and nothing else does (ssh.ts). */
  | { kind: 'ssh'; token: string }
  /** A file URL signed with the sandbox's signing key. */
  | { kind: 'file-signature'; method: string; path: string; expires: string; signature: string }

export type AccessQuestion = {
  /** Id or name of the sandbox. For a preview, the token of a signed URL is possible too. */
  sandboxIdOrName: string
  credentials: Credential[]
  /**
   * Port of the preview. Absent: the call is for the toolbox. `toolboxPort`: the call is for the toolbox at the address
   * of a signed preview.
   */
  port?: number
  /** True if the call counts as activity of the sandbox. */
  countsAsActivity: boolean
  /**
   * True if the call was allowed before and is still open. Such a call goes on after its signed URL expires, but ends
   * if the URL is revoked. It also ends when a person's key or token expires: some issuers give no other sign that a
   * person has left.
   */
  wasLetIn?: boolean
}

/** What granted access: one of the credentials, the token of a signed preview URL, or a public preview. */
export type OpenedBy = Credential['kind'] | 'signed-preview' | 'public'

/** The body of a 200: the call is allowed. A refusal is an ordinary error body that the gate passes on. */
export type Access = {
  sandboxId: string
  organizationId: string
  /** The ticket for the gate: control's signature on what this answer allows (ticket.ts). */
  ticket: string
  /** The socket on which the sandbox's runner listens for gates: `unix:/path`. */
  runnerAddress: string
  isStarted: boolean
  state: string
  /**
   * The call needs this generation of the sandbox, or a later one: the gate waits until the runner has it. Absent: the
   * gate does not wait.
   */
  leastGeneration?: number
  openedBy: OpenedBy
  /** True if the bearer token is a credential of this server, so that the gate must not forward it into the sandbox. */
  isBearerOurs: boolean
  /** True if visitors with a browser get a warning page before the preview. */
  warnsVisitors: boolean
  /**
   * Host header for the server inside the sandbox, with its port. Many servers refuse any other host name. Absent: the
   * preview's host.
   */
  hostInside?: 'localhost'
}

/** Returns the toolbox path and query, below the sandbox, of the call that a signed file URL stands for. */
export const pathOfSignedFile = (method: string, path: string): string =>
  `${method === 'POST' ? '/files/upload-v2' : '/files/download'}?path=${encodeURIComponent(path.toWellFormed())}`

/** A change of the variables that later processes of a sandbox get. First variables are removed, then set. */
export type VariableChange = {
  set: Record<string, string>
  /** Names of variables to remove. */
  unset: readonly string[]
  /** Removes each variable whose value begins with this text, unless it is in `set`. Absent or empty: removes none. */
  unsetValuePrefix?: string
}

/** The body of a gate's request to control for a change of variables (`POST /proxy/env`). */
export type VariableQuestion = VariableChange & {
  /** The ticket of the call, which must allow the toolbox. */
  ticket: string
  /**
   * The variables that processes have from the image and the server. Control stores the removal of these only, because
   * all others can simply be deleted.
   */
  inherited: Record<string, string>
}

/** `generation`: a runner with this generation of the sandbox, or a later one, knows the changed variables. */
export type VariableAnswer = { generation: number }

/** The hash of a question, for use as a cache key. No credential can be read from the hash. */
export const keyOfQuestion = (question: AccessQuestion): string => hash('sha256', JSON.stringify(question), 'base64')

/** How long an allowing answer may be cached, in milliseconds since control decided it. */
export const accessKeptMs = 1000

/**
 * An answer that control sends over a gate's link (`GET /proxy/link`), to a question that the gate will probably ask
 * soon.
 */
export type AccessAhead = {
  type: 'access'
  /** The question's key, made by `keyOfQuestion`. */
  question: string
  access: Access
  /** When control decided the answer, in milliseconds since 1970 by control's clock. */
  at: number
}

/**
 * Header with the version of the calling SDK. Toolboxes adapt their answers to the version. Clients that are no SDK do
 * not send it.
 */
export const sdkVersionHeader = 'x-daytona-sdk-version'

/**
 * Header with the name of the calling SDK. An SDK that sends a name but no version is older than all SDKs that send a
 * version.
 */
export const sdkSourceHeader = 'x-daytona-source'

/** Port of the toolbox. Some SDKs call the toolbox as a preview of this port. */
export const toolboxPort = 2280

/** Ports inside a sandbox that have no preview. */
export const reservedPorts: readonly number[] = [toolboxPort, 22_222, 33_333]

/** The token of a signed preview. In the host name it takes the place of the sandbox's id. */
export const signedToken = /^[a-z0-9]{16}$/
