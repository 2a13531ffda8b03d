import type { ControlRoute } from '#src/control/auth/route.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'

/** Lists every route of control. Only the `run` of a route uses its parts, so empty stand-ins are enough here. */
export const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return endpoints(absent as EndpointParts)
}
