const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:${label}\\.)+${label}$`)

/** Whether a text is a name for a list of domains, without a `*.` before it: lower-case ASCII with a dot. Its length is not checked. */
export const isDomainName = (text: string): boolean => pattern.test(text)
