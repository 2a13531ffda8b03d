// Gets the link that `alcove up` prints at its first start. With this link, the first administrator can sign in once, without a
// password.

const answerMs = 10_000

/** Asks control for the sign-in link. Undefined if control makes no link, for example with an identity provider of the operator. */
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
