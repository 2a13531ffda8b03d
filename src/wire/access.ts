// The access question that the gate asks control before it forwards a call (`POST /proxy/access`, with the gate's service
// key), and the answers that control sends ahead of the question.
import { hash } from 'node:crypto'

/** A credential of the caller. Several credentials are tried in the order of docs/reference/choices.md. */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  /** The preview token of a sandbox; `kind` says where the call carried it. */
  | { kind: 'preview-header' | 'preview-query' | 'preview-cookie'; token: string }
  /** A file URL signed with the sandbox's signing key. */
  | { kind: 'file-signature'; method: string; path: string; expires: string; signature: string }

export type AccessQuestion = {
  /** Id or name of the sandbox. For a preview it may also be the token of a signed URL. */
  sandboxIdOrName: string
  credentials: Credential[]
  /** Port of a preview. Absent: the toolbox. `toolboxPort`: the toolbox at the address of a signed preview. */
  port?: number
  /** True if the call counts as activity of the sandbox. */
  countsAsActivity: boolean
  /**
   * True if the call was allowed before and is still open. It goes on after its signed URL expires, but ends if the URL
   * is revoked. It also ends when a person's key or token expires: some issuers give no other sign that a person has
   * left.
   */
  wasLetIn?: boolean
}

/** What granted access: one of the credentials, the token of a signed preview URL, or a public preview. */
export type OpenedBy = Credential['kind'] | 'signed-preview' | 'public'

/** The body of a 200: the call is allowed. A refusal is an ordinary problem that the gate passes on. */
export type Access = {
  sandboxId: string
  organizationId: string
  /** The ticket, signed by control, for what this answer allows (ticket.ts). */
  ticket: string
  /** The socket on which the sandbox's runner listens for gates: `unix:/path`. */
  runnerAddress: string
  isStarted: boolean
  state: string
  /**
   * Generation that the runner must have of the sandbox before the gate forwards the call. Absent: the gate does not
   * wait.
   */
  leastGeneration?: number
  openedBy: OpenedBy
  /** True if the bearer token is a credential of this server, so that the gate must not forward it into the sandbox. */
  isBearerOurs: boolean
  /** True if visitors with a browser see a warning page before the preview. */
  warnsVisitors: boolean
  /** Host header for the server inside, with its port, because many servers refuse other names. Absent: the preview's host. */
  hostInside?: 'localhost'
}

/** The toolbox path and query, below the sandbox, of the call that a signed file URL stands for. */
export const pathOfSignedFile = (method: string, path: string): string =>
  `${method === 'POST' ? '/files/upload-v2' : '/files/download'}?path=${encodeURIComponent(path.toWellFormed())}`

/** A change of the variables that later processes of a sandbox get. Removing comes before setting. */
export type VariableChange = {
  set: Record<string, string>
  /** Names of variables to remove. */
  unset: readonly string[]
  /** Removes each variable whose value begins with this text, unless it is in `set`. Absent or empty: removes none. */
  unsetValuePrefix?: string
}

/** A gate asks control for a change (`POST /proxy/env`). */
export type VariableQuestion = VariableChange & {
  /** The ticket of the call, which must allow the toolbox. */
  ticket: string
  /** The variables that processes have from the image and the server. Only these need a note when they are removed. */
  inherited: Record<string, string>
}

/** `generation`: the runner that has this generation of the sandbox, or a later one, knows the variables. */
export type VariableAnswer = { generation: number }

/** Hash of the question, for use as a cache key. No credential can be read from it. */
export const keyOfQuestion = (question: AccessQuestion): string => hash('sha256', JSON.stringify(question), 'base64')

/** How long a positive answer may be cached, in milliseconds since control decided it. */
export const accessKeptMs = 1000

/** Sent over a gate's link (`GET /proxy/link`): the answer to a question that the gate will probably ask soon. */
export type AccessAhead = {
  type: 'access'
  /** The question's key, made by `keyOfQuestion`. */
  question: string
  access: Access
  /** When control decided the answer, in milliseconds since 1970 by control's clock. */
  at: number
}

/** Version of the calling SDK. Toolboxes adapt their answers to it. Other clients do not send it. */
export const sdkVersionHeader = 'x-daytona-sdk-version'

/** Name of the calling SDK. An SDK that sends a name but no version is older than all that send a version. */
export const sdkSourceHeader = 'x-daytona-source'

/** Port of the toolbox: a preview of this port is the toolbox, because some SDKs expect that. */
export const toolboxPort = 2280

/** Ports inside a sandbox that have no preview. */
export const reservedPorts: readonly number[] = [toolboxPort, 22_222, 33_333]

/** The token of a signed preview. In the host name it takes the place of the sandbox's id. */
export const signedToken = /^[a-z0-9]{16}$/
