// What every room of the toolbox knows about the sandbox that a call is for.
import { routesOf } from '#src/http/route.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Agent } from './agent/agent.ts'

export type ToolboxSandbox = {
  id: string
  assignment: Assignment
  agent: Agent
  /** Of its image, absolute; undefined: things begin in the user's home. */
  workDirectory?: string | undefined
}

export type ToolboxContext = {
  sandbox: ToolboxSandbox
  /** What it uses; undefined when it has ended meanwhile. */
  measure: () => Promise<MeterReading | undefined>
}

/** `sandbox`: the proxy has checked the caller, and the sandbox is started; or else it may be paused, and its agent not answer. */
export type ToolboxNeeds = 'sandbox' | 'sandbox, also paused'

export const route = routesOf<ToolboxContext, ToolboxNeeds>()

/** What every process in the sandbox finds in its environment: who it is, then the sandbox's own, then the call's. */
export const environmentOf = (
  { assignment }: Pick<ToolboxSandbox, 'assignment'>,
  envs: Record<string, string> = {},
) => ({
  DAYTONA_SANDBOX_ID: assignment.sandboxId,
  DAYTONA_SANDBOX_SNAPSHOT: assignment.snapshot,
  DAYTONA_SANDBOX_USER: assignment.user,
  DAYTONA_ORGANIZATION_ID: assignment.organizationId,
  DAYTONA_REGION_ID: assignment.regionId,
  ...(assignment.otelEndpoint === undefined ? {} : { DAYTONA_OTEL_ENDPOINT: assignment.otelEndpoint }),
  ...assignment.env,
  ...envs,
})
