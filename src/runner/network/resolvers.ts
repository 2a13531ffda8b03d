// Chooses the DNS resolvers for sandboxes. Sandboxes cannot reach a resolver on the host's loopback, so they use the resolvers that
// this resolver asks. A link-local resolver is never used: at 169.254.169.254, clouds serve credentials.
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

/** Returns the IPv4 name servers of a resolv.conf that sandboxes can use. Returns at most three, like the C library. */
export const nameServersIn = (text: string) =>
  text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((address) => {
      const block = address.includes('/') ? undefined : parseCidr(address)
      return block !== undefined && !outOfReach.some((range) => overlap(range, block))
    })
    .slice(0, 3)

/** Returns the IPv4 addresses of the resolvers for sandboxes, the preferred resolver first. Always returns at least one address. */
export const resolversForSandboxes = (read: (path: string) => string = textOf): string[] => {
  for (const file of files) {
    const found = nameServersIn(read(file))
    if (found.length > 0) return found
  }
  return [...publicResolvers]
}
