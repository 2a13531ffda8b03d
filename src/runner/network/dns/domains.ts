// What a list of domains allows: a name itself, or with `*.` in front everything below it.
import { isDomainName } from '#src/wire/domain.ts'

export const domainLimit = 10

/** Lower-case ASCII with at least one dot, as control has made it. */
export const isDomain = (text: string) => text.length <= 253 && isDomainName(text.replace(/^\*\./, ''))

/** `name` as `message.ts` reads it: in lower case, without a dot at its end. */
export const isListed = (domains: readonly string[], name: string): boolean =>
  domains.some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
