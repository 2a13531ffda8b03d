// What every room of the toolbox knows about the sandbox that a call is for.

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
  /** Absent where nobody can know. */
  memoryKills?: () => Promise<MemoryKillsHere>
  /** Working directory of the image, absolute; undefined: the user's home. */
  workDirectory?: string | undefined
}

export type ToolboxContext = {
  sandbox: ToolboxSandbox
  /** What it uses; undefined when it has ended meanwhile. */
  measure: () => Promise<MeterReading | undefined>
  compiler: Compiler
  /** Limit in seconds of an execute that names none and comes from no SDK; 0: none. */
  executeTimeoutSeconds: number
  /** For a call with a body: releases it, once it is not needed any more (held-bodies.ts). */
  letGo?: () => void
}

/** `sandbox`: the caller was let in, and the sandbox is started; or else it may be paused, and its agent not answer. */
export type ToolboxNeeds = 'sandbox' | 'sandbox, also paused'

type ToolboxRoute = Route<ToolboxContext, ToolboxNeeds>

const untilOver = async (held: HeldBody<unknown>, work: () => unknown): Promise<unknown> => {
  using _ = held
  return await work()
}

/** Nothing in here may outlive its first step but what is held, which is why it is not asynchronous. */
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

/** A row of the toolbox. The body of a call counts for its sandbox while it is held, at most until the call is over. */
export const route: typeof rowOf = (row) => {
  const made = rowOf(row)
  return made.body === undefined ? made : { ...made, run: (call) => runHolding(made.run, call) }
}
