// The sandbox of a call, as all endpoints of the toolbox know it.

import { type Route, routesOf } from '#src/http/route.ts'
import type { KnownAssignment, MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Agent } from './agent/agent.ts'
import type { Compiler } from './compiler.ts'
import { HeldBody } from './held-bodies.ts'

export type ToolboxSandbox = {
  id: string
  assignment: KnownAssignment
  agent: Agent
  /** Absent if the number of memory kills cannot be known. */
  memoryKills?: () => Promise<MemoryKillsHere>
  /** Working directory of the image, absolute. Default: the user's home. */
  workDirectory?: string | undefined
}

export type ToolboxContext = {
  sandbox: ToolboxSandbox
  /** Reads the sandbox's current use; undefined if it has ended. */
  measure: () => Promise<MeterReading | undefined>
  compiler: Compiler
  /** Timeout in seconds of an execute without a timeout that does not come from an SDK. 0: no timeout. */
  executeTimeoutSeconds: number
  /** Releases the body of a call when it is no longer needed (held-bodies.ts). Absent without a body. */
  letGo?: () => void
}

/**
 * `sandbox`: the sandbox must be started. `sandbox, also paused`: it may be paused, so that its agent does not answer. The caller
 * was let in.
 */
export type ToolboxNeeds = 'sandbox' | 'sandbox, also paused'

type ToolboxRoute = Route<ToolboxContext, ToolboxNeeds>

const untilOver = async (held: HeldBody<unknown>, work: () => unknown): Promise<unknown> => {
  using _ = held
  return await work()
}

/** Not async on purpose: an async frame would keep `call.body` alive, and the limit of held bodies would not hold. */
const runHolding = (run: ToolboxRoute['run'], call: Parameters<ToolboxRoute['run']>[0]): Promise<unknown> => {
  const held = new HeldBody(call.sandbox.id, call.body)
  call.request.body = undefined
  const given = {
    ...call,
    letGo: () => held.letGo(),
    get body() {
      return held.body
    },
  }
  return untilOver(held, () => run(given))
}

const rowOf = routesOf<ToolboxContext, ToolboxNeeds>()

/** A route of the toolbox. While the body of a call is held, at most until the call ends, it counts for its sandbox. */
export const route: typeof rowOf = (row) => {
  const made = rowOf(row)
  return made.body === undefined ? made : { ...made, run: (call) => runHolding(made.run, call) }
}
