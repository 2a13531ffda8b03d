// API keys and service keys as text: 32 random bytes, so a plain sha256 cannot be guessed back.
import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

export const newKey = (): string => `dtn_${randomBytes(32).toString('hex')}`

/** Lower hex; the only form in which a key is stored, or any other secret that is only ever compared. */
export const hashKey = (key: string): string => hash('sha256', key, 'hex')

/** Compares two hashes without telling by its duration how much of them agrees. */
export const isSameHash = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one, 'hex'), Buffer.from(other, 'hex')]
  return a.length === 32 && b.length === 32 && timingSafeEqual(a, b)
}

/** The form in which a key is shown after its creation. */
export const maskKey = (key: string): string => `${key.slice(0, 3)}${'*'.repeat(20)}${key.slice(-3)}`

/** 192 random bits, as text that needs no escaping in a URL. */
export const newSecret = (): string => randomBytes(24).toString('base64url')
