import { Problem } from '#src/problems.ts'
import type { SandboxRow } from './sandbox.ts'

/** Where one port of a sandbox is seen: a host name of its own below the proxy's, as `GET /config` says. */
export const previewOf = (row: SandboxRow, portText: string, proxyUrl: string) => {
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : 0
  if (port < 1 || port > 65_535) throw new Problem('bad_request', 'params.port must be a port from 1 to 65535')
  const { protocol, host } = new URL(proxyUrl)
  return { sandboxId: row.id, url: `${protocol}//${port}-${row.id}.${host}`, token: row.preview_token }
}
