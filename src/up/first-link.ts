// The link that the first `up` prints. It signs the first administrator in to the dashboard once, without a password.

const answerMs = 10_000

/**
 * Asks control for a link. Returns undefined if there is none, such as where another issuer signs people in. The server
 * works without it.
 */
export const askFirstLink = async (controlUrl: string, key: string): Promise<string | undefined> => {
  try {
    const reply = await fetch(`${controlUrl}/api/admin/users/link`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ email: 'admin@localhost' }),
      signal: AbortSignal.timeout(answerMs),
    })
    const { url } = (await reply.json()) as { url?: unknown }
    return reply.ok && typeof url === 'string' ? url : undefined
  } catch {
    return undefined
  }
}
