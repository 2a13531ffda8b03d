// Makes tokens for commands in one sandbox and connections to its ports. An access token would expire while a long command runs.
import { type Api, path } from '../api.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'

/** The longest lifetime that the server accepts for a token, in minutes. */
const weekMinutes = 7 * 24 * 60

/** Makes a token, and returns it with a function that revokes it. A token that is not revoked expires after a week. */
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
