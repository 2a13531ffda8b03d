import { type Api, path } from '../api.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'

/** The port in the request for a token. Any port will do, because the token opens all ports of a sandbox and its toolbox. */
const anyPort = '1024'

/**
 * Returns headers that give access to the toolbox of a sandbox until its next start. The access token of a signed-in user would
 * expire after some minutes, which would end an open terminal.
 */
export const lastingHeaders = async (api: Api, { id }: Sandbox): Promise<Record<string, string>> => {
  const { token } = await api.ask<{ token: string }>('GET', path`/sandbox/${id}/ports/${anyPort}/preview-url`)
  return { 'x-daytona-preview-token': token }
}
