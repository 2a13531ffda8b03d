// Refuses the head of a request that could be understood in two ways. If a reverse proxy understood it in one way and
// this server in the other, a caller could get around a check.
import type { IncomingMessage } from 'node:http'

/**
 * Headers that contain the destination or the credential of a call. If such a header is repeated, Node uses the first
 * value without an error.
 */
const onlyOnce = new Set(['host', 'authorization'])

/**
 * The form of the header Host: a name, an IPv4 address, or an IPv6 address in brackets. A port may follow (RFC 9110
 * §7.2). An empty value is allowed.
 */
const host = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i

/**
 * Returns why the head of a request is invalid (RFC 9112), so that the server must answer 400. Undefined: the head is
 * valid. A second Content-Length is not checked here, because Node refuses it.
 */
export const findBadHead = ({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!onlyOnce.has(name)) continue
    if (seen.has(name)) return `The header ${rawHeaders[at]} must not be sent twice.`
    seen.add(name)
  }
  // Node refuses a call without Host, but accepts an upgrade without Host.
  if (headers.host === undefined) return httpVersion === '1.0' ? undefined : 'The header Host is missing.'
  if (!host.test(headers.host)) return 'The header Host must name one host, and a port where there is one.'
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'Transfer-Encoding may only be chunked.'
  return undefined
}
