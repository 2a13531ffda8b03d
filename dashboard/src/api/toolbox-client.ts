// The client of one sandbox's toolbox: its terminals, files and logs. The gate to call is named by the sandbox's record.
import createClient, { type Client } from 'openapi-fetch'
import { answerOf, control, fetchSignedIn, type Sandbox } from './client.ts'
import type { paths } from './toolbox.d.ts'

export type ToolboxOwner = Pick<Sandbox, 'id' | 'toolboxProxyUrl'>

/** The port under which the gate knows the toolbox, for tokens of its WebSockets. */
const toolboxPort = 2280

/** A header of calls that only show something. Without it an open page would keep the sandbox awake. */
export const unnoticed = { 'X-Daytona-Skip-Last-Activity-Update': 'true' } as const

export const toolboxUrl = ({ id, toolboxProxyUrl }: ToolboxOwner): string =>
  `${toolboxProxyUrl.replace(/\/$/, '')}/${encodeURIComponent(id)}`

const clients = new Map<string, Client<paths>>()

/** Calls to a sandbox's toolbox. Most callers want `answerOf(toolboxOf(sandbox).GET(…))`. */
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
 * Opens a WebSocket of the toolbox. Browsers send no headers with it, so a token goes into the address; it changes at each
 * start of the sandbox and is fetched for each socket. `path` begins with a slash and may have a query.
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
