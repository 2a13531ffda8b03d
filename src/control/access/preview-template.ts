// Where a port of a sandbox is seen. A host name of its own below the gate's keeps sandboxes apart in a browser; where the
// gate is reached by a bare address there are no names below it, and the path says which port is meant.
import { isIP } from 'node:net'

export const previewTemplate = (proxyUrl: string): string => {
  const { protocol, hostname, host } = new URL(proxyUrl)
  // On this machine alone: every name below `localhost` is this machine as well (RFC 6761 §6.3).
  const named = hostname === '127.0.0.1' ? host.replace(hostname, 'localhost') : host
  const isAddress = isIP(named.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')) !== 0
  return isAddress
    ? `${protocol}//${host}/preview/{{sandboxId}}/{{PORT}}`
    : `${protocol}//{{PORT}}-{{sandboxId}}.${named}`
}

/** `sandbox`: its id, or the token of a signed URL. */
export const previewUrl = (proxyUrl: string, sandbox: string, port: number): string =>
  previewTemplate(proxyUrl).replace('{{PORT}}', String(port)).replace('{{sandboxId}}', sandbox)
