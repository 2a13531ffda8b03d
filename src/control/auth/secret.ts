// The text form of API keys and service keys. Control stores only the SHA-256 hash of a key.
// A key has 32 random bytes, so nobody can guess it from its hash.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

export const newKey = (): string => `dtn_${randomBytes(32).toString('hex')}`

/** Returns the hash of a key in lower-case hex. Other secrets that are only compared are stored as this hash too. */
export const hashKey = (key: string): string => hash('sha256', key, 'hex')

/** Compares two hashes in constant time. */
export const isSameHash = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one, 'hex'), Buffer.from(other, 'hex')]
  return a.length === 32 && b.length === 32 && timingSafeEqual(a, b)
}

/**
 * Returns the form in which a key is shown after its creation: its first and last three characters, and stars between
 * them.
 */
export const maskKey = (key: string): string => `${key.slice(0, 3)}${'*'.repeat(20)}${key.slice(-3)}`

/** Makes a secret of 192 random bits, as text that needs no escaping in a URL. */
export const newSecret = (): string => randomBytes(24).toString('base64url')
