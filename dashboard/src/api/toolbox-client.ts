// Calls the toolbox of one sandbox, for its terminals, files and logs, at the address that the API names.
import createClient, { type Client } from 'openapi-fetch'
import { answerOf, control, fetchSignedIn, type Sandbox } from './client.ts'
import type { paths } from './toolbox.d.ts'

export type ToolboxOwner = Pick<Sandbox, 'id' | 'toolboxProxyUrl'>

/** The port in the request for a preview token. The token gives access to the toolbox and to all ports of the sandbox. */
const toolboxPort = 2280

/** A header for calls that must not count as activity. Without it an open page would keep an idle sandbox running. */
export const unnoticed = { 'X-Daytona-Skip-Last-Activity-Update': 'true' } as const

export const toolboxUrl = ({ id, toolboxProxyUrl }: ToolboxOwner): string =>
  `${toolboxProxyUrl.replace(/\/$/, '')}/${encodeURIComponent(id)}`

const clients = new Map<string, Client<paths>>()

/** Returns a client for the toolbox of a sandbox. Most callers write `answerOf(toolboxOf(sandbox).GET(…))`. */
export const toolboxOf = (owner: ToolboxOwner): Client<paths> => {
  const baseUrl = toolboxUrl(owner)
  let client = clients.get(baseUrl)
  if (client === undefined) {
    client = createClient<paths>({ baseUrl, fetch: fetchSignedIn })
    clients.set(baseUrl, client)
  }
  return client
}

/**
 * Opens a WebSocket of the toolbox. The URL contains a preview token, because browsers cannot send headers with a WebSocket. The
 * token is fetched each time, because it changes at each start of the sandbox.
 */
export const openToolboxSocket = async (
  owner: ToolboxOwner,
  path: string,
  protocols: string[] = [],
): Promise<WebSocket> => {
  const { token } = await answerOf(
    control.GET('/sandbox/{sandboxIdOrName}/ports/{port}/preview-url', {
      params: { path: { sandboxIdOrName: owner.id, port: toolboxPort } } as never,
    }),
  )
  const url = new URL(`${toolboxUrl(owner)}${path}`)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.searchParams.set('DAYTONA_SANDBOX_AUTH_KEY', token)
  const socket = new WebSocket(url, protocols)
  socket.binaryType = 'arraybuffer'
  return socket
}

type SuccessOf<T> = T extends { content: { 'application/json': infer Body } } ? Body : never

/** The body of a successful answer of the toolbox, such as `ToolboxAnswerTo<'/files', 'get'>`. */
export type ToolboxAnswerTo<Path extends keyof paths, Method extends keyof paths[Path]> = paths[Path][Method] extends {
  responses: infer Replies
}
  ? SuccessOf<Replies[keyof Replies & (200 | 201)]>
  : never

export type FileInfo = ToolboxAnswerTo<'/files', 'get'>[number]
export type PtyInfo = ToolboxAnswerTo<'/process/pty', 'get'>['sessions'][number]
export type ShellSession = ToolboxAnswerTo<'/process/session', 'get'>[number]
export type SessionCommand = ShellSession['commands'][number]
