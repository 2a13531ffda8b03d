import type { ControlRoute } from '#src/control/auth/route.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'
import { joinRoutes } from '#src/control/hosts/routes.ts'

/**
 * Lists every route of control. The parts of control that routes use, such as the database, are placeholders here, because a route
 * uses them only when it handles a call.
 */
export const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return [...endpoints(absent as EndpointParts), ...joinRoutes(absent as EndpointParts)]
}
