// What the server tells about a sandbox.
import { type Api, path } from '../api.ts'

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

export const getSandbox = (api: Api, idOrName: string): Promise<Sandbox> =>
  api.ask<Sandbox>('GET', path`/sandbox/${idOrName}`)

/** Returns the address of the toolbox of a sandbox. */
export const toolboxOf = ({ toolboxProxyUrl, id }: Sandbox): string =>
  `${toolboxProxyUrl.replace(/\/+$/, '')}/${encodeURIComponent(id)}`
