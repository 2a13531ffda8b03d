const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:${label}\\.)+${label}$`)

/** Of a list of domains, without the `*.` that may stand before it: lower-case ASCII with at least one dot. Its length is not asked. */
export const isDomainName = (text: string): boolean => pattern.test(text)
