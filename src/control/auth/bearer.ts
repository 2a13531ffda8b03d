// Reads the credential and the organization that a request names. Nothing is verified here.
import type { IncomingHttpHeaders } from 'node:http'
import { Problem } from '#src/problems.ts'

/** Reads the bearer token (RFC 6750 §2.1). Ignores a token of more than 8192 characters. */
export const readBearer = (headers: IncomingHttpHeaders): string | undefined => {
  const [, token] = /^Bearer +([A-Za-z0-9\-._~+/]{1,8192}=*)$/i.exec(headers.authorization ?? '') ?? []
  return token
}

/** Whether a token has the form of a JWT: three base64url parts, of which the first begins with `{"` when decoded. */
export const isJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token)

const organizationHeaders = ['x-daytona-organization-id', 'x-service-organization-id'] as const

/** Returns the organization that the caller's headers name. Throws 400 if two headers name different organizations. */
export const readOrganizationHeader = (headers: IncomingHttpHeaders): string | undefined => {
  const named = new Set(organizationHeaders.flatMap((header) => headers[header] ?? []).filter((value) => value !== ''))
  if (named.size > 1) throw new Problem('bad_request', 'The two organization headers name different organizations.')
  return [...named][0]
}
