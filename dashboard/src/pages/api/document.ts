// The OpenAPI descriptions of both services, as the viewer gets them.

export type OpenApi = {
  servers?: unknown
  security?: unknown
  components?: Record<string, unknown>
  [field: string]: unknown
}

/**
 * The description with the address at which its calls are made. The session signs in, so the viewer must not ask for a
 * credential.
 */
export const withServer = ({ security: _, components, ...rest }: OpenApi, url: string): OpenApi => {
  const { securitySchemes: __, ...others } = components ?? {}
  return { ...rest, components: others, servers: [{ url }] }
}

/** Whether a call of the viewer goes to one of our services. Only those may get the session's credential. */
export const isOurs = (url: string, services: readonly string[]): boolean => {
  const called = URL.parse(url)
  return services.some((service) => {
    const { origin, pathname } = new URL(service)
    return called?.origin === origin && called.pathname.startsWith(`${pathname.replace(/\/$/, '')}/`)
  })
}
