// Checks URLs of services that an organization runs itself. Private addresses are allowed, because control never calls these
// services. Addresses where no such service can run are refused.
import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { Problem } from '#src/problems.ts'

const longest = 2048

// Separate lists for IPv4 and IPv6: in one list, Node would compare IPv4 addresses with `::ffff:0:0/96`, and refuse all of them.
const refused4 = new BlockList()
refused4.addSubnet('0.0.0.0', 8)
refused4.addSubnet('169.254.0.0', 16) // link-local, and the metadata services of most clouds
refused4.addSubnet('224.0.0.0', 3) // multicast, reserved and broadcast
refused4.addAddress('100.100.100.200') // metadata service of Alibaba Cloud
refused4.addAddress('168.63.129.16') // metadata service of Azure
refused4.addAddress('192.0.0.192') // metadata service of Oracle Cloud

const refused6 = new BlockList()
refused6.addAddress('::', 'ipv6')
refused6.addSubnet('::ffff:0:0', 96, 'ipv6') // IPv4 addresses written as IPv6 (mapped)
refused6.addSubnet('64:ff9b::', 96, 'ipv6') // IPv4 addresses written as IPv6 (NAT64)
refused6.addSubnet('2002::', 16, 'ipv6') // IPv4 addresses written as IPv6 (6to4)
refused6.addSubnet('fe80::', 10, 'ipv6')
refused6.addSubnet('ff00::', 8, 'ipv6')
refused6.addAddress('fd00:ec2::254', 'ipv6') // metadata service of AWS

const metadataNames = new Set(['metadata', 'metadata.google.internal', 'instance-data', 'instance-data.ec2.internal'])

/**
 * Whether the host of a URL is refused. `hostname` comes from the WHATWG URL parser, which writes every IPv4 address in
 * dotted decimal.
 */
const isRefusedHost = (hostname: string): boolean => {
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (isIPv4(host)) return refused4.check(host)
  return isIPv6(host) ? refused6.check(host, 'ipv6') : metadataNames.has(host)
}

/**
 * Returns the trimmed URL of a service. Throws 400 for a URL that is too long, is not HTTP or HTTPS, has credentials or
 * a fragment, or names a refused host.
 */
export const readServiceUrl = (field: string, given: string): string => {
  const complain = (why: string) => new Problem('bad_request', `${field} ${why}`)
  const text = given.trim()
  if (text.length > longest) throw complain(`must not be longer than ${longest} characters`)
  if (!/^https?:\/\/[^/?#\\]/i.test(text) || /[\s\p{C}]/u.test(text) || !URL.canParse(text))
    throw complain('must be a URL that begins with http:// or https://')
  const { username, password, hostname, hash } = new URL(text)
  if (username !== '' || password !== '' || /^[^/]*\/\/[^/?#]*@/.test(text)) throw complain('must not hold credentials')
  if (hash !== '') throw complain('must not have a fragment')
  if (isRefusedHost(hostname)) throw complain('must not name a link-local or metadata address')
  return text
}
