// What the gate asks control before it forwards anything: `POST /proxy/access`, with the gate's own service key. And what
// control tells it before it asks.
import { hash } from 'node:crypto'

/** A proof of who calls. The proofs of a call are tried in the order of docs/reference/choices.md. */
export type Credential =
  | { kind: 'bearer'; token: string; organizationId?: string }
  /** The preview token of a sandbox, by the way it came. */
  | { kind: 'preview-header' | 'preview-query' | 'preview-cookie'; token: string }
  /** A file URL signed with the sandbox's signing key. */
  | { kind: 'file-signature'; method: string; path: string; expires: string; signature: string }

export type AccessQuestion = {
  /** For a preview this may be the token of a signed URL as well. */
  sandboxIdOrName: string
  credentials: Credential[]
  /** The port of a preview. Absent: the toolbox. `toolboxPort`: the toolbox, at the address of a signed preview. */
  port?: number
  /** The call counts as activity of the sandbox. */
  countsAsActivity: boolean
  /**
   * The call was let in before and is still open: a signed address that has expired since does not end it, one that was revoked
   * does. Keys and tokens of people end it when they expire: of some issuers nothing else is heard of somebody who has left.
   */
  wasLetIn?: boolean
}

/** What opened the door: one of the credentials, the token in a signed preview's address, or nothing, where all may enter. */
export type OpenedBy = Credential['kind'] | 'signed-preview' | 'public'

/** The answer of a 200; a refusal is an ordinary problem that the gate passes on. */
export type Access = {
  sandboxId: string
  organizationId: string
  /** Signed by control (ticket.ts): what this answer allows. */
  ticket: string
  /** Where its runner listens for gates: `unix:/path`. */
  runnerAddress: string
  isStarted: boolean
  state: string
  /** The call waits until its runner has taken this generation of the sandbox; absent: any is good. */
  leastGeneration?: number
  openedBy: OpenedBy
  /** The bearer is a credential of this server, whether or not it opened this: it is for no eyes inside a sandbox. */
  isBearerOurs: boolean
  /** People who come to a preview with a browser are to be warned first. */
  warnsVisitors: boolean
  /** Servers inside are called by this name and their port, as many refuse to be called otherwise. Absent: by the preview's. */
  hostInside?: 'localhost'
}

/** The call that a signed file URL stands for, as toolboxes are asked it: from after the sandbox to the end. */
export const pathOfSignedFile = (method: string, path: string): string =>
  `${method === 'POST' ? '/files/upload-v2' : '/files/download'}?path=${encodeURIComponent(path.toWellFormed())}`

/** The question in a form that can be compared and kept: no credential can be read from it. */
export const keyOfQuestion = (question: AccessQuestion): string => hash('sha256', JSON.stringify(question), 'base64')

/** How long an answer that says yes may be gone by, counted from when it was found out. Milliseconds. */
export const accessKeptMs = 1000

/** Over the link of a gate (`GET /proxy/link`): the answer to a question that it is about to ask. */
export type AccessAhead = {
  type: 'access'
  /** `keyOfQuestion`. */
  question: string
  access: Access
  /** When it was so, in milliseconds since 1970 by the clock of control. */
  at: number
}

/** The version of the SDK that calls. Toolboxes decide by it what that SDK expects; other clients send none. */
export const sdkVersionHeader = 'x-daytona-sdk-version'

/** SDKs name themselves in it. One that names no version is older than all that do. */
export const sdkSourceHeader = 'x-daytona-source'

/** The preview of this port is the toolbox, as some SDKs expect. */
export const toolboxPort = 2280

/** Ports inside a sandbox that are never previewed. */
export const reservedPorts: readonly number[] = [toolboxPort, 22_222, 33_333]

/** The token of a signed preview, which stands where otherwise the sandbox does. */
export const signedToken = /^[a-z0-9]{16}$/
