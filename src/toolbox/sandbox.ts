// What every room of the toolbox knows about the sandbox that a call is for.
import { type Route, routesOf } from '#src/http/route.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Agent } from './agent/agent.ts'
import { HeldBody } from './held-bodies.ts'

/** Processes of a sandbox that were killed for want of memory. */
export type SandboxMemoryKills = {
  /** Since the sandbox started. */
  count: () => number
  /** Whether there may have been one in this time; milliseconds since 1970. */
  between: (from: number, until: number) => boolean
}

export type ToolboxSandbox = {
  id: string
  assignment: Assignment
  agent: Agent
  /** Absent where nobody can know. */
  memoryKills?: SandboxMemoryKills
  /** Of its image, absolute; undefined: things begin in the user's home. */
  workDirectory?: string | undefined
}

export type ToolboxContext = {
  sandbox: ToolboxSandbox
  /** What it uses; undefined when it has ended meanwhile. */
  measure: () => Promise<MeterReading | undefined>
  /** Limit in seconds of an execute that names none and comes from no SDK; 0: none. */
  executeTimeoutSeconds: number
  /** Of a call with a body: it is not needed any more (held-bodies.ts). */
  letGo?: () => void
}

/** `sandbox`: the proxy has checked the caller, and the sandbox is started; or else it may be paused, and its agent not answer. */
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

/** What every process in the sandbox finds in its environment: who it is, then the sandbox's own, then the call's. */
export const environmentOf = (
  { assignment }: Pick<ToolboxSandbox, 'assignment'>,
  envs: Record<string, string> = {},
) => ({
  DAYTONA_SANDBOX_ID: assignment.sandboxId,
  DAYTONA_SANDBOX_SNAPSHOT: assignment.snapshot,
  DAYTONA_SANDBOX_USER: assignment.user.replace(/:.*$/s, ''),
  DAYTONA_ORGANIZATION_ID: assignment.organizationId,
  DAYTONA_REGION_ID: assignment.regionId,
  // Agents that ask before they act as root read it (docs/guides/agents-with-own-sandboxes.md).
  IS_SANDBOX: '1',
  ...(assignment.otelEndpoint === undefined ? {} : { DAYTONA_OTEL_ENDPOINT: assignment.otelEndpoint }),
  ...assignment.env,
  ...envs,
})
