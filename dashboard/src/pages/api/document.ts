// Prepares the OpenAPI descriptions of the API and of the toolbox for the viewer.

export type OpenApi = {
  servers?: unknown
  security?: unknown
  components?: Record<string, unknown>
  [field: string]: unknown
}

/**
 * Returns the OpenAPI description with the URL to which Swagger UI sends its calls. The security schemes are removed: the page
 * adds the session's credential to each call, so Swagger UI must not ask for one.
 */
export const withServer = ({ security: _, components, ...rest }: OpenApi, url: string): OpenApi => {
  const { securitySchemes: __, ...others } = components ?? {}
  return { ...rest, components: others, servers: [{ url }] }
}

/**
 * Whether Swagger UI calls one of the `services` of this installation (control's API, or toolboxes). Only such calls may carry the
 * session's credential.
 */
export const isOurs = (url: string, services: readonly string[]): boolean => {
  const called = URL.parse(url)
  return services.some((service) => {
    const { origin, pathname } = new URL(service)
    return called?.origin === origin && called.pathname.startsWith(`${pathname.replace(/\/$/, '')}/`)
  })
}
