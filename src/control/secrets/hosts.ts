// Checks and normalizes the hosts and the value of a secret, as a caller has written them.
import { isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { Problem } from '#src/problems.ts'
import { isDomainName } from '#src/wire/domain.ts'

const refuse = (why: string) => new Problem('bad_request', why)

/** Returns a host name in lower-case ASCII. A leading `*.` stands for exactly one label, and at least two labels must follow it. */
const readHost = (given: string): string => {
  const shown = `"${given.slice(0, 60)}"`
  const text = given.trim()
  const star = text.startsWith('*.') ? '*.' : ''
  const name = text.slice(star.length).replace(/\.$/, '')
  if (text === '*' || name.includes('*'))
    throw refuse(`hosts must be names such as api.example.com or *.example.com, not ${shown}`)
  if (/^\S+:\d+$/.test(name))
    throw refuse(`hosts must be without a port, because values are sent to port 443 only: ${shown}`)
  // Refuses a name with one of these characters, because `domainToASCII` would silently cut off the name at that character.
  const ascii = /[%/\\?#@:[\]\s]/.test(name) ? '' : domainToASCII(name)
  if (isIPv4(ascii)) throw refuse(`hosts must be names and not addresses: ${shown}`)
  if (ascii.length > 253 - star.length || !isDomainName(ascii))
    throw refuse(`hosts must be names such as api.example.com or *.example.com, not ${shown}`)
  return star + ascii
}

export const readHosts = (given: readonly string[]): string[] => [...new Set(given.map(readHost))]

/** The value of a secret is put into a request header, so a line break in it would begin another header. */
export const checkValue = (value: string): string => {
  if (/[\r\n]/.test(value)) throw refuse('value must not contain a line end, because it is sent in headers of requests')
  if (!/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(value))
    throw refuse('value must be printable ASCII without spaces around it, because it is sent in headers of requests')
  return value
}
