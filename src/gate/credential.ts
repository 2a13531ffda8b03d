// Reads the credentials of a request. Returns them in the order in which control tries them: for previews, the order of
// docs/reference/choices.md.
import type { IncomingHttpHeaders } from 'node:http'
import type { Credential } from '#src/wire/access.ts'

const textOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value) || undefined

const bearerOf = (headers: IncomingHttpHeaders): Credential[] => {
  // HTTP allows no tab after `Bearer`, but a tab counts as a space here. Otherwise the gate could miss the credential, and pass it
  // on to a server inside a sandbox.
  const [, token] = /^bearer[ \t]+(\S+)[ \t]*$/i.exec(headers.authorization ?? '') ?? []
  if (token === undefined) return []
  const organizationId = textOf(headers['x-daytona-organization-id']) ?? textOf(headers['x-service-organization-id'])
  return [{ kind: 'bearer', token, ...(organizationId === undefined ? {} : { organizationId }) }]
}

/** Returns the credentials in the headers and the query of a call to a toolbox or a preview. */
export const credentialsOf = (headers: IncomingHttpHeaders, queryToken: string | undefined): Credential[] => {
  const headerToken = textOf(headers['x-daytona-preview-token'])
  return [
    ...bearerOf(headers),
    ...(headerToken === undefined ? [] : [{ kind: 'preview-header', token: headerToken } as const]),
    ...(queryToken === undefined ? [] : [{ kind: 'preview-query', token: queryToken } as const]),
  ]
}

export const countsAsActivity = (headers: IncomingHttpHeaders): boolean =>
  textOf(headers['x-daytona-skip-last-activity-update'])?.toLowerCase() !== 'true'
