import { randomBytes } from 'node:crypto'

/** 192 random bits, as text that needs no escaping in a URL. */
export const newSecret = (): string => randomBytes(24).toString('base64url')
