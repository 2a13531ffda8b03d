// Defines `ToolboxSandbox`, the sandbox that a call acts on. All endpoints of the toolbox use it.

import { type Route, routesOf } from '#src/http/route.ts'
import type { VariableChange } from '#src/wire/access.ts'
import type { KnownAssignment, MemoryKillsHere } from '#src/wire/gate-link.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Agent } from './agent/agent.ts'
import type { Compiler } from './compiler.ts'
import { HeldBody } from './held-bodies.ts'

export type ToolboxSandbox = {
  id: string
  assignment: KnownAssignment
  agent: Agent
  /**
   * Returns the number and times of the kernel's kills in the sandbox for lack of memory. Absent if the gate cannot find these out.
   */
  memoryKills?: () => Promise<MemoryKillsHere>
  /** Absolute working directory of the image. Default: the user's home. */
  workDirectory?: string | undefined
}

export type ToolboxContext = {
  sandbox: ToolboxSandbox
  /** Reads how much processor, memory and disk the sandbox uses now; undefined if the sandbox has ended. */
  measure: () => Promise<MeterReading | undefined>
  compiler: Compiler
  /** Changes the variables of processes that start later. Resolves when every process that starts from then on gets the change. */
  changeVariables: (change: VariableChange) => Promise<void>
  /** Timeout in seconds of a `process/execute` call that sends no timeout and does not come from an SDK; 0: none. */
  executeTimeoutSeconds: number
  /** Frees the memory of the call's body (held-bodies.ts) before the handler ends. Absent without a body. */
  letGo?: () => void
}

/**
 * What a route needs: a started sandbox, or one that may also be paused. A paused sandbox's agent does not answer. In both cases
 * the gate has checked that the caller may use the sandbox.
 */
export type ToolboxNeeds = 'sandbox' | 'sandbox, also paused'

type ToolboxRoute = Route<ToolboxContext, ToolboxNeeds>

const untilOver = async (held: HeldBody<unknown>, work: () => unknown): Promise<unknown> => {
  using _ = held
  return await work()
}

/**
 * Runs a handler that can free the call's body with `letGo`. Not async: the function's state would keep `call.body` in memory. A
 * freed body no longer counts towards the limit (held-bodies.ts), so it must really be free.
 */
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

/**
 * Declares a route of the toolbox. A call's body counts towards the limit of its sandbox (held-bodies.ts) until the handler frees
 * it or the call ends.
 */
export const route: typeof rowOf = (row) => {
  const made = rowOf(row)
  return made.body === undefined ? made : { ...made, run: (call) => runHolding(made.run, call) }
}
