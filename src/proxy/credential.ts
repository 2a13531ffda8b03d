// Reads who calls from a request, in the contract's order (contract/toolbox.md §1). The first that is present decides.
import type { IncomingHttpHeaders } from 'node:http'
import type { AccessQuestion, Credential } from '#src/wire/access.ts'
import type { Target } from './target.ts'

const textOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value) || undefined

export const readCredential = (headers: IncomingHttpHeaders, { queryToken }: Target): Credential => {
  const [, bearer] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? []
  if (bearer !== undefined) {
    const organizationId = textOf(headers['x-daytona-organization-id']) ?? textOf(headers['x-service-organization-id'])
    return { kind: 'bearer', token: bearer, ...(organizationId === undefined ? {} : { organizationId }) }
  }
  const token = textOf(headers['x-daytona-preview-token']) ?? queryToken
  return token === undefined ? { kind: 'none' } : { kind: 'preview-token', token }
}

export const questionOf = (headers: IncomingHttpHeaders, target: Target): AccessQuestion => ({
  sandboxIdOrName: target.sandboxIdOrName,
  credential: readCredential(headers, target),
  countsAsActivity: textOf(headers['x-daytona-skip-last-activity-update'])?.toLowerCase() !== 'true',
})
