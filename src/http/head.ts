// Refuses the head of a request that could be understood in two ways. If a reverse proxy understood the head differently, a caller
// could get around a check.
import type { IncomingMessage } from 'node:http'

/**
 * Headers with the destination or the credential of a call. If such a header is repeated, Node uses the first value without an
 * error.
 */
const onlyOnce = new Set(['host', 'authorization'])

/**
 * Matches the header Host (RFC 9110 §7.2): a name, an IPv4 address, or an IPv6 address in brackets. The name may be empty. A port
 * may follow.
 */
const host = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i

/** Returns why the head of a request is invalid (RFC 9112). Undefined: it is valid. Node itself refuses a second Content-Length. */
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
