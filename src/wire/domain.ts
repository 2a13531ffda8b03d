const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:${label}\\.)+${label}$`)

/** Whether `text` is a domain name in lower-case ASCII, of any length. The caller must remove a leading `*.` first. */
export const isDomainName = (text: string): boolean => pattern.test(text)
