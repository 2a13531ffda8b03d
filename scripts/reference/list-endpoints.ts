import type { ControlRoute } from '#src/control/auth/route.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'
import { joinRoutes } from '#src/control/hosts/routes.ts'

/**
 * Lists every route of control. The parts of control that routes use are placeholders here, because routes use them only
 * when a call comes.
 */
export const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return [...endpoints(absent as EndpointParts), ...joinRoutes(absent as EndpointParts)]
}
