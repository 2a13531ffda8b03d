import type { KnownAssignment } from '#src/wire/gate-link.ts'

export type EnvironmentSource = { assignment: KnownAssignment }

/** The variables that tell a process which sandbox it is in. */
const identityOf = (assignment: KnownAssignment): Record<string, string> => ({
  DAYTONA_SANDBOX_ID: assignment.sandboxId,
  DAYTONA_SANDBOX_SNAPSHOT: assignment.snapshot,
  DAYTONA_SANDBOX_USER: assignment.user.replace(/:.*$/s, ''),
  DAYTONA_ORGANIZATION_ID: assignment.organizationId,
  DAYTONA_REGION_ID: assignment.regionId,
  // Claude Code runs as root with `--dangerously-skip-permissions` only if this variable is set
  // (docs/guides/agents-with-own-sandboxes.md).
  IS_SANDBOX: '1',
  ...(assignment.otelEndpoint === undefined ? {} : { DAYTONA_OTEL_ENDPOINT: assignment.otelEndpoint }),
})

/**
 * Returns a process's environment. Variables of the call override those of the sandbox, which override those of `identityOf`.
 * `unsetEnv` does not remove variables of the call.
 */
export const environmentOf = ({ assignment }: EnvironmentSource, envs: Record<string, string> = {}) => {
  const environment = { ...identityOf(assignment), ...assignment.env }
  for (const name of assignment.unsetEnv ?? []) delete environment[name]
  return { ...environment, ...envs }
}

/**
 * Returns the image's variables, and the variables that identify the sandbox. The result ignores what the sandbox sets or unsets.
 */
export const inheritedBy = (
  assignment: KnownAssignment,
  ofImage: Readonly<Record<string, string>> = {},
): Record<string, string> => ({ ...identityOf(assignment), ...ofImage })
