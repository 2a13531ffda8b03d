// An organization's telemetry setting: the endpoint that gets the telemetry of its sandboxes, and the headers for that
// endpoint. The headers are credentials. So the setting is encrypted in the database, and only a telemetry collector gets the
// values of the headers.

import type { OtelConfig } from '#src/control/people/organization.ts'
import type { Logger } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { readServiceUrl } from '../service-url.ts'
import { type Encryption, UnreadableSecret } from '../storage/encryption.ts'
import { changeOrganization, type OrganizationParts } from './change.ts'
import { findOtelConfig } from './store.ts'

const mostHeaders = 64
const longestValue = 8192
const shownValue = '******'

const purposeOf = (organizationId: string) => `otel-config:${organizationId}`

const open = ({ encryption }: { encryption: Encryption }, organizationId: string, stored: string): OtelConfig =>
  JSON.parse(encryption.decrypt(purposeOf(organizationId), stored)) as OtelConfig

const mask = ({ endpoint, headers }: OtelConfig): OtelConfig => ({
  endpoint,
  headers: headers && Object.fromEntries(Object.keys(headers).map((name) => [name, shownValue])),
})

/**
 * Returns an organization's telemetry setting with masked header values. Logs an error and returns null if the setting
 * cannot be decrypted.
 */
export const viewOtelConfig = (
  parts: { encryption: Encryption; log: Logger },
  organizationId: string,
  stored: string | null,
): OtelConfig | null => {
  if (stored === null) return null
  try {
    return mask(open(parts, organizationId, stored))
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    parts.log.error({ err: error, organizationId }, 'a telemetry configuration cannot be read')
    return null
  }
}

type Asker = { isCollector: boolean }

export const getOtelConfig = async (
  parts: OrganizationParts,
  organizationId: string,
  { isCollector }: Asker,
): Promise<OtelConfig> => {
  const stored = await findOtelConfig(parts.database.sql, organizationId)
  if (!stored) throw new Problem('not_found', 'No telemetry is configured here.')
  const config = open(parts, organizationId, stored)
  return isCollector ? config : mask(config)
}

const isMasked = (value: string) => /^\*+$/.test(value)

const checkHeader = (name: string, value: string): void => {
  const complain = (why: string) => new Problem('bad_request', `headers: ${why}`)
  // The characters that RFC 9110 (§5.1 and §5.5) allows in the name and in the value of a header.
  if (!/^[\w!#$%&'*+.^`|~-]{1,256}$/.test(name)) throw complain(`"${name.slice(0, 60)}" is not the name of a header`)
  if (value.length > longestValue) throw complain(`the value of ${name} is longer than ${longestValue} characters`)
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
    throw complain(`the value of ${name} has a character that is not allowed in a header`)
}

/** Reads the headers of the body. A masked value (asterisks) means: keep the stored value. */
const readHeaders = (given: Record<string, string>, stored: () => Record<string, string>): Record<string, string> => {
  const entries = Object.entries(given)
  if (entries.length > mostHeaders)
    throw new Problem('bad_request', `headers must not have more than ${mostHeaders} names`)
  const names = new Set(entries.map(([name]) => name.toLowerCase()))
  if (names.size < entries.length) throw new Problem('bad_request', 'headers: a name is used twice')
  return Object.fromEntries(
    entries.map(([name, value]) => {
      checkHeader(name, value)
      if (!isMasked(value)) return [name, value]
      const kept = Object.entries(stored()).find(([known]) => known.toLowerCase() === name.toLowerCase())
      if (kept === undefined)
        throw new Problem(
          'bad_request',
          `headers: no value of ${name} is stored, so send the value instead of asterisks`,
        )
      return [name, kept[1]]
    }),
  )
}

export const setOtelConfig = async (
  parts: OrganizationParts,
  organizationId: string,
  body: { endpoint: string; headers?: Record<string, string> | null },
): Promise<void> => {
  const endpoint = readServiceUrl('endpoint', body.endpoint)
  await changeOrganization(parts, organizationId, ({ otelConfig }) => {
    const stored = () => (otelConfig === null ? {} : (open(parts, organizationId, otelConfig).headers ?? {}))
    const config: OtelConfig = { endpoint, headers: body.headers ? readHeaders(body.headers, stored) : null }
    return { otel_config: parts.encryption.encrypt(purposeOf(organizationId), JSON.stringify(config)) }
  })
}

export const removeOtelConfig = (parts: OrganizationParts, organizationId: string): Promise<void> =>
  changeOrganization(parts, organizationId, () => ({ otel_config: null }))
