// Signs webhook messages by Standard Webhooks 1.0. Receivers can verify the signatures with any library for that standard, or with
// the libraries of Svix.
import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'

const secretBytes = 32

/** Makes a new secret in the form that the receivers' libraries expect: `whsec_` and base64. */
export const newSecret = (): string => `whsec_${randomBytes(secretBytes).toString('base64')}`

/**
 * Returns the headers of a message, with a signature by each secret, newest first. A receiver needs to know only one of the
 * secrets.
 */
export const signedHeaders = (
  secrets: readonly string[],
  { id, at, body }: { id: string; at: Date; body: string },
): Record<string, string> => {
  const signature = secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' ')
  const values = { id, timestamp: String(Math.floor(at.getTime() / 1000)), signature }
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => [
      [`webhook-${name}`, value],
      [`svix-${name}`, value],
    ]),
  )
}
