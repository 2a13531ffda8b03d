import type { KnownAssignment } from '#src/wire/gate-link.ts'

export type EnvironmentSource = { assignment: KnownAssignment }

/** What every process in the sandbox finds in its environment: who it is, then the sandbox's own, then the call's. */
export const environmentOf = ({ assignment }: EnvironmentSource, envs: Record<string, string> = {}) => ({
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
