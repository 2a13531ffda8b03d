import { type Api, path } from '../api.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'

/** The token opens all ports of a sandbox and its toolbox, so any port may stand in the question for it. */
const anyPort = '1024'

/**
 * Returns headers that open the toolbox of a sandbox until its next start. The token of a session would end after
 * minutes, and with it an open terminal.
 */
export const lastingHeaders = async (api: Api, { id }: Sandbox): Promise<Record<string, string>> => {
  const { token } = await api.ask<{ token: string }>('GET', path`/sandbox/${id}/ports/${anyPort}/preview-url`)
  return { 'x-daytona-preview-token': token }
}
