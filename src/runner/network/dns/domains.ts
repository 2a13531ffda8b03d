// What a list of domains allows: a name itself, or with `*.` in front everything below it.

export const domainLimit = 10

const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:\\*\\.)?(?:${label}\\.)+${label}$`)

/** Lower-case ASCII with at least one dot, as control has made it. */
export const isDomain = (text: string) => text.length <= 253 && pattern.test(text)

/** `name` as `message.ts` reads it: in lower case, without a dot at its end. */
export const isListed = (domains: readonly string[], name: string): boolean =>
  domains.some((domain) => (domain.startsWith('*.') ? name.endsWith(domain.slice(1)) : name === domain))
