// Prepares the OpenAPI descriptions of the API and of the toolbox for the viewer.

export type OpenApi = {
  servers?: unknown
  security?: unknown
  components?: Record<string, unknown>
  [field: string]: unknown
}

/** Sets the URL for Swagger UI's calls. Removes the security schemes, because the page itself adds the credential to each call. */
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
