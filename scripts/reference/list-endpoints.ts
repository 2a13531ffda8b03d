import type { ControlRoute } from '#src/control/auth/route.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'
import { joinRoutes } from '#src/control/hosts/routes.ts'

/** Lists every route of control. The parts that routes use are placeholders: a route uses them only when it handles a call. */
export const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return [...endpoints(absent as EndpointParts), ...joinRoutes(absent as EndpointParts)]
}
