import { type Api, path } from '../api.ts'
import type { Sandbox } from '../sandboxes/sandbox.ts'

/** Any port will do in the request for a token: the token opens all ports of a sandbox and its toolbox. */
const anyPort = '1024'

/**
 * Headers for the toolbox of a sandbox that are valid until its next start. An access token would expire after some minutes, and
 * end an open terminal.
 */
export const lastingHeaders = async (api: Api, { id }: Sandbox): Promise<Record<string, string>> => {
  const { token } = await api.ask<{ token: string }>('GET', path`/sandbox/${id}/ports/${anyPort}/preview-url`)
  return { 'x-daytona-preview-token': token }
}
