// Matches names against a sandbox's allowed domains. `a.test` allows only the name `a.test`, and `*.a.test` every name below that
// domain.
import { isDomainName } from '#src/wire/domain.ts'

export const domainLimit = 10

/** Whether `text` may be an allowed domain: a name in lower case with at least one dot. `*.` may come before the name. */
export const isDomain = (text: string) => text.length <= 253 && isDomainName(text.replace(/^\*\./, ''))

/** Whether a sandbox's list of domains allows `name`, which must be in lower case and without a dot at its end. */
export const isListed = (domains: readonly string[], name: string): boolean =>
  domains.some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
