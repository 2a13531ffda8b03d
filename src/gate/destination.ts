// The destination of a call is a toolbox, another gate, or a server in a sandbox.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Problem } from '#src/problems.ts'

export type Outgoing = { method: string; path: string; headers: string[]; isUpgrade?: boolean }

export type Destination = {
  /** The path and query of the call as the destination gets them. */
  path: string
  /** Creates the request to the destination and returns it. The caller must write the body and end the request. */
  send: (outgoing: Outgoing) => ClientRequest
  /** Returns those headers of the call that the gate passes on to the destination. */
  inward: (isUpgrade: boolean) => string[]
  /** Returns those headers of the destination's answer that the gate passes on to the caller. */
  outward: (answer: IncomingMessage) => string[]
  /** Returns the error for the caller if no answer came, or if the answer cannot be passed on. */
  failure: (cause: unknown) => Problem
}
