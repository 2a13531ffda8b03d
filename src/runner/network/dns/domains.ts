// Matching of names against a list of domains: an entry allows the name itself, or with a leading `*.` every name below it.
import { isDomainName } from '#src/wire/domain.ts'

export const domainLimit = 10

/** Lower-case ASCII with at least one dot, as control normalizes domains. */
export const isDomain = (text: string) => text.length <= 253 && isDomainName(text.replace(/^\*\./, ''))

/** `name` is in lower case and without a dot at its end, as `message.ts` returns it. */
export const isListed = (domains: readonly string[], name: string): boolean =>
  domains.some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
