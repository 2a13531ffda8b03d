// Matches names against a sandbox's list of allowed domains. The entry `a.test` allows only that name. The entry `*.a.test`
// allows every name below `a.test`.
import { isDomainName } from '#src/wire/domain.ts'

export const domainLimit = 10

/**
 * Whether `text` may be an entry of a sandbox's list of allowed domains: a domain name in lower case with at least one dot, perhaps
 * with `*.` before it.
 */
export const isDomain = (text: string) => text.length <= 253 && isDomainName(text.replace(/^\*\./, ''))

/**
 * Whether a sandbox's list of allowed domains allows `name`. The name must be in lower case and without a dot at its end, as
 * `message.ts` returns it.
 */
export const isListed = (domains: readonly string[], name: string): boolean =>
  domains.some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
