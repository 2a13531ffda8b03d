// The fields of a sandbox that the server sends and that the commands use.
import { type Api, path } from '../api.ts'
import { exitCodes, Failure } from '../failure.ts'

export type Sandbox = {
  id: string
  name: string
  state: string
  desiredState?: string
  snapshot?: string
  cpu: number
  memory: number
  disk: number
  target?: string
  user?: string
  public?: boolean
  labels?: Record<string, string>
  createdAt?: string
  lastActivityAt?: string
  errorReason?: string
  autoStopInterval?: number
  toolboxProxyUrl: string
}

/** Returns the answer if it describes a sandbox. Otherwise throws a Failure, because another program than Alcove has answered. */
export const asSandbox = (answer: Sandbox): Sandbox => {
  const { id, name, state } = answer ?? {}
  if (typeof id === 'string' && typeof name === 'string' && typeof state === 'string') return answer
  const sentence = 'The server did not answer with a sandbox. Is it an Alcove server?'
  throw new Failure(sentence, exitCodes.serverError)
}

export const getSandbox = async (api: Api, idOrName: string): Promise<Sandbox> =>
  asSandbox(await api.ask<Sandbox>('GET', path`/sandbox/${idOrName}`))

/** Returns the address of the toolbox of a sandbox. */
export const toolboxOf = ({ toolboxProxyUrl, id }: Sandbox): string => {
  if (!/^https?:/i.test(toolboxProxyUrl) || !URL.canParse(toolboxProxyUrl))
    throw new Failure('The server gave no valid address for the toolbox of this sandbox.', exitCodes.serverError)
  return `${toolboxProxyUrl.replace(/\/+$/, '')}/${encodeURIComponent(id)}`
}
