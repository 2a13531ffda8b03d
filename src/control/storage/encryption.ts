// Encrypts small secrets that control must read again, such as the password of an external service. The key is never in the
// database. Secrets that are only compared are stored as hashes.
//
// v1.<which key>.<base64url of nonce, ciphertext, tag> (AES-256-GCM)
//
// Each secret is bound to its purpose, such as `otel-config:<organizationId>`: a secret that is copied into another row cannot be
// read. All known keys decrypt; only the first key encrypts (see `isCurrent`).
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto'

export type Encryption = {
  encrypt: (purpose: string, text: string) => string
  /** Throws `UnreadableSecret` for anything that was not encrypted for this purpose by one of our keys. */
  decrypt: (purpose: string, secret: string) => string
  /** Returns whether the first key encrypted the secret. If not, encrypt the secret again, so that the older key can be removed. */
  isCurrent: (secret: string) => boolean
  /**
   * Returns 32 secret bytes for a purpose, different bytes for each purpose. The bytes are computed from the setting
   * `ALCOVE_ENCRYPTION_KEY`, so all control processes get the same bytes.
   */
  derive: (purpose: string) => Buffer
}

/**
 * Thrown if a secret cannot be decrypted: the key was lost, or the row was changed. Only the operator can repair this.
 */
export class UnreadableSecret extends Error {
  constructor(purpose: string, why: string, options?: ErrorOptions) {
    super(`The secret of ${purpose} cannot be read: ${why}.`, options)
  }
}

const version = 'v1'
const cipher = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

export const newEncryptionKey = (): string => randomBytes(keyBytes).toString('base64')

/** Reads a key: 32 bytes in base64, with the standard or the URL-safe alphabet. `undefined` for any other text. */
export const readEncryptionKey = (text: string): Buffer | undefined => {
  if (!/^[\w+/-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, 'base64')
  return key.length === keyBytes ? key : undefined
}

/** Returns a short name for a key. The name identifies the key without revealing it. */
const nameOf = (key: Buffer) =>
  createHash('sha256').update('alcove encryption key').update(key).digest('hex').slice(0, 8)

/** Creates the encryption from its keys. The first key encrypts and decrypts; older keys only decrypt. */
export const createEncryption = ([current, ...older]: readonly [Buffer, ...Buffer[]]): Encryption => {
  const keys = new Map([current, ...older].map((key) => [nameOf(key), key]))
  const currentName = nameOf(current)
  return {
    derive: (purpose) => createHmac('sha256', current).update(`derived ${purpose}`).digest(),
    encrypt: (purpose, text) => {
      const nonce = randomBytes(nonceBytes)
      const sealing = createCipheriv(cipher, current, nonce, { authTagLength: tagBytes }).setAAD(Buffer.from(purpose))
      const sealed = Buffer.concat([nonce, sealing.update(text, 'utf8'), sealing.final(), sealing.getAuthTag()])
      return `${version}.${currentName}.${sealed.toString('base64url')}`
    },
    decrypt: (purpose, secret) => {
      const [, name, body] = /^v1\.([0-9a-f]{8})\.([\w-]+)$/.exec(secret) ?? []
      if (name === undefined || body === undefined) throw new UnreadableSecret(purpose, 'it is in no known form')
      const key = keys.get(name)
      if (key === undefined) throw new UnreadableSecret(purpose, `there is no key ${name}`)
      const sealed = Buffer.from(body, 'base64url')
      if (sealed.length < nonceBytes + tagBytes) throw new UnreadableSecret(purpose, 'it is cut off')
      try {
        const opening = createDecipheriv(cipher, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
          .setAAD(Buffer.from(purpose))
          .setAuthTag(sealed.subarray(-tagBytes))
        return Buffer.concat([opening.update(sealed.subarray(nonceBytes, -tagBytes)), opening.final()]).toString('utf8')
      } catch (cause) {
        throw new UnreadableSecret(purpose, 'it was changed, or is of something else', { cause })
      }
    },
    isCurrent: (secret) => secret.startsWith(`${version}.${currentName}.`),
  }
}
