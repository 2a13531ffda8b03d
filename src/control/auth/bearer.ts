// Reads the credential and the organization that a request names. Nothing is verified here.
import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '#src/problems.ts'

/**
 * Reads the bearer token (RFC 6750 §2.1). A token longer than Alcove ever accepts is ignored: it is not hashed, looked
 * up or logged. Some identity providers issue very long tokens.
 */
export const readBearer = (headers: IncomingHttpHeaders): string | undefined => {
  const [, token] = /^Bearer +([A-Za-z0-9\-._~+/]{1,8192}=*)$/i.exec(headers.authorization ?? '') ?? []
  return token
}

/**
 * Whether a token is shaped like a JWT: three base64url parts, of which the first encodes `{"`. A JWT is never tried as
 * a key.
 */
export const isJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token)

const organizationHeaders = ['x-daytona-organization-id', 'x-service-organization-id'] as const

/**
 * Returns the organization that the caller names in either of two headers, or undefined if no header names one. Throws
 * 400 if the headers name different organizations.
 */
export const readOrganizationHeader = (headers: IncomingHttpHeaders): string | undefined => {
  const named = new Set(organizationHeaders.flatMap((header) => headers[header] ?? []).filter((value) => value !== ''))
  if (named.size > 1) throw new Problem('bad_request', 'The two organization headers name different organizations.')
  return [...named][0]
}
