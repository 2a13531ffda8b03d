const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const pattern = new RegExp(`^(?:${label}\\.)+${label}$`)

/** Whether a text, without a leading `*.`, is a valid domain name: lower-case ASCII with a dot. Length is not checked. */
export const isDomainName = (text: string): boolean => pattern.test(text)
