// Refuses a request head that can be read in two ways. A reverse proxy in front of us may read it the other way.
import type { IncomingMessage } from 'node:http'

/**
 * Headers that decide where a call goes, or who the caller is. If such a header is repeated, Node silently uses the
 * first value.
 */
const onlyOnce = new Set(['host', 'authorization'])

/**
 * The form of a host: a name, an IPv4 address, or an IPv6 address in brackets; a port may follow (RFC 9110 §7.2). Empty
 * is allowed.
 */
const host = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i

/** Says why a head must be answered with 400 (RFC 9112). Node itself refuses two values of Content-Length. */
export const findBadHead = ({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!onlyOnce.has(name)) continue
    if (seen.has(name)) return `The header ${rawHeaders[at]} must not be sent twice.`
    seen.add(name)
  }
  // Node itself refuses a missing Host, but not in an upgrade.
  if (headers.host === undefined) return httpVersion === '1.0' ? undefined : 'The header Host is missing.'
  if (!host.test(headers.host)) return 'The header Host must name one host, and a port where there is one.'
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'Transfer-Encoding may only be chunked.'
  return undefined
}
