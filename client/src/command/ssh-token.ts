// A token that opens one sandbox for commands and ports. It does not expire while a long command runs, as the token of a
// session does.
import { type Api, path } from '../api.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'

/** Maximum time that the server gives a token, in minutes. */
const weekMinutes = 7 * 24 * 60

/** Makes a token, and returns it with the function that revokes it. The server forgets a token that is not revoked after a week. */
export const makeToken = async (api: Api, { id }: Sandbox) => {
  const query = { expiresInMinutes: String(weekMinutes) }
  const { token } = await api.ask<{ token: string }>('POST', path`/sandbox/${id}/ssh-access`, { query })
  const revoke = async (): Promise<void> => {
    await api
      .uninterrupted()
      .ask('DELETE', path`/sandbox/${id}/ssh-access`, { query: { token }, patience: 5000 })
      .catch(() => {})
  }
  return { token, revoke }
}
