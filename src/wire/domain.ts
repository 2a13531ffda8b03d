const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:${label}\\.)+${label}$`)

/**
 * Whether `text` is a valid domain name: lower-case ASCII labels with a dot between them. The length of the whole name
 * is not checked. Returns false for a name that begins with `*.`, so the caller must remove that part before the call.
 */
export const isDomainName = (text: string): boolean => pattern.test(text)
