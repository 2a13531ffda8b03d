// Where a call goes behind the gate, and what of it crosses.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Problem } from '#src/problems.ts'

export type Outgoing = { method: string; path: string; headers: string[]; isUpgrade?: boolean }

export type Destination = {
  /** There, with the query. */
  path: string
  /** A request that has not been sent yet. */
  send: (outgoing: Outgoing) => ClientRequest
  /** The headers of this call as they go in. */
  inward: (isUpgrade: boolean) => string[]
  /** The headers of an answer as they go out. */
  outward: (answer: IncomingMessage) => string[]
  /** What the caller is told when the other side broke off before it had answered. */
  failure: (cause: unknown) => Problem
}
