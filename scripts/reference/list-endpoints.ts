import type { ControlRoute } from '#src/control/auth/route.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'
import { joinRoutes } from '#src/control/hosts/routes.ts'

/**
 * Lists every route of control. Routes use what they are given here only when a call comes, so a placeholder is enough.
 */
export const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return [...endpoints(absent as EndpointParts), ...joinRoutes(absent as EndpointParts)]
}
