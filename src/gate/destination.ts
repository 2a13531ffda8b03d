// The destination to which the gate passes a call, and the parts of the call that are passed on.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Problem } from '#src/problems.ts'

export type Outgoing = { method: string; path: string; headers: string[]; isUpgrade?: boolean }

export type Destination = {
  /** The path at the destination, with the query. */
  path: string
  /** Creates the request to the destination and returns it. The caller must write the body and end the request. */
  send: (outgoing: Outgoing) => ClientRequest
  /** Returns the headers of the call that the destination gets. */
  inward: (isUpgrade: boolean) => string[]
  /** Returns the headers of the destination's answer that the caller gets. */
  outward: (answer: IncomingMessage) => string[]
  /** Returns the refusal for the caller if the destination disconnected before it answered. */
  failure: (cause: unknown) => Problem
}
