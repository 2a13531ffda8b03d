// For tests: calls a preview as a program or a browser would, under any host name.
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Access } from '#src/wire/access.ts'
import { bodyOf, type Sides } from './simulated.ts'

export const previewHost = '3000-box-id.proxy.test:4601'

type Call = { method?: string; path?: string; host?: string; headers?: Record<string, string>; body?: string }

type Answer = { status: number; headers: IncomingMessage['headers']; text: string }

export const visit = async (
  { port }: Pick<Sides, 'port'>,
  { method = 'GET', path = '/', host = previewHost, headers = {}, body }: Call = {},
): Promise<Answer> => {
  const outgoing = request({ port, method, path, headers: { host, ...headers }, agent: false })
  outgoing.end(body)
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  outgoing.on('error', () => undefined)
  return { status: answer.statusCode!, headers: answer.headers, text: await bodyOf(answer) }
}

/** The headers of a browser when a person opens an address. */
export const browser = {
  accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
  'user-agent': 'Mozilla/5.0',
  'sec-fetch-mode': 'navigate',
}

/** Headers with a key that control accepts. */
export const key = { authorization: 'Bearer dtn_key' }

/** Makes control admit every caller, and name `by` as the caller's credential. */
export const openedBy = (sides: Sides, by: Access['openedBy'], more: Partial<Access> = {}) => {
  sides.control.answer = () => sides.access({ openedBy: by, ...more })
}

/** Makes control refuse every caller. */
export const refused = (sides: Sides, status = 401) => {
  sides.control.answer = () => ({ status, body: { message: 'no' } })
}
