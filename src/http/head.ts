// What a call's head may not say twice or in two ways. Whoever stands in front of us may believe the other one.
import type { IncomingMessage } from 'node:http'

/** Headers that decide where a call goes, or as whom. Node takes the first of several without a word. */
const onlyOnce = new Set(['host', 'authorization'])

/** A name, an IPv4 address or an IPv6 address in brackets; a port may follow (RFC 9110 §7.2). Empty is allowed. */
const host = /^(?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/i

/** Says what is wrong with a head that RFC 9112 wants to be answered with 400. Node itself refuses two lengths. */
export const findBadHead = ({ rawHeaders, headers, httpVersion }: IncomingMessage): string | undefined => {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!onlyOnce.has(name)) continue
    if (seen.has(name)) return `The header ${rawHeaders[at]} must not be sent twice.`
    seen.add(name)
  }
  // Node looks for it itself, but not in an upgrade.
  if (headers.host === undefined) return httpVersion === '1.0' ? undefined : 'The header Host is missing.'
  if (!host.test(headers.host)) return 'The header Host must name one host, and a port where there is one.'
  const coding = headers['transfer-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return 'Transfer-Encoding may only be chunked.'
  return undefined
}
