// The public URL of a sandbox's port. Each port has its own host name, so that browsers isolate sandboxes from each other.
// If the gate has only an IP address, the port stands in the path.
import { isIP } from 'node:net'

export const previewTemplate = (proxyUrl: string): string => {
  const { protocol, hostname, host } = new URL(proxyUrl)
  // Every name below `localhost` leads to this machine (RFC 6761 §6.3), so each port can have its own host name.
  const named = hostname === '127.0.0.1' ? host.replace(hostname, 'localhost') : host
  const isAddress = isIP(named.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')) !== 0
  return isAddress
    ? `${protocol}//${host}/preview/{{sandboxId}}/{{PORT}}`
    : `${protocol}//{{PORT}}-{{sandboxId}}.${named}`
}

/** Returns the URL of a port. `sandbox`: the sandbox's id, or the token of a signed URL. */
export const previewUrl = (proxyUrl: string, sandbox: string, port: number): string =>
  previewTemplate(proxyUrl).replace('{{PORT}}', String(port)).replace('{{sandboxId}}', sandbox)
