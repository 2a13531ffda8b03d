// Chooses the DNS resolvers of sandboxes. Sandboxes cannot reach a resolver on the host's loopback (systemd-resolved, dnsmasq),
// so its own upstreams are used. Link-local resolvers are left out: clouds keep credentials at 169.254.169.254, and that address
// stays closed without exception.
import { readFileSync } from 'node:fs'
import { type Cidr, overlap, parseCidr } from './cidr.ts'
import { ofNoHost } from './closed.ts'

const files = [
  '/etc/resolv.conf',
  '/run/systemd/resolve/resolv.conf',
  '/run/NetworkManager/no-stub-resolv.conf',
] as const

const publicResolvers = ['1.1.1.1', '8.8.8.8'] as const

const outOfReach = ofNoHost.map((text) => parseCidr(text) as Cidr)

const textOf = (path: string) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** The usable IPv4 name servers of a resolv.conf; three at most, as in the C library. */
export const nameServersIn = (text: string) =>
  text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((address) => {
      const block = address.includes('/') ? undefined : parseCidr(address)
      return block !== undefined && !outOfReach.some((range) => overlap(range, block))
    })
    .slice(0, 3)

/** Finds the IPv4 addresses of the resolvers, in order of preference. Never empty. */
export const resolversForSandboxes = (read: (path: string) => string = textOf): string[] => {
  for (const file of files) {
    const found = nameServersIn(read(file))
    if (found.length > 0) return found
  }
  return [...publicResolvers]
}
