// The network that a program has which fetches what a stranger names: like that of a sandbox, where neither the host nor private or
// link-local addresses can be reached whatever a name leads to. Only what the operator has named is fetched from the host.
import { existsSync, realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Job, View } from './workshop.ts'

/** A network namespace in which only public addresses and these resolvers can be reached. */
export type PublicNetwork = AsyncDisposable & { netnsPath: string; resolvers: readonly string[] }

export type Egress = AsyncDisposable & { of: Job['network']; views: readonly View[] }

/** The files of `/etc` that are needed to find and trust a server. */
const networkViews = (names: readonly string[]): View[] =>
  [...names, 'hosts', 'nsswitch.conf', 'ssl', 'pki', 'containers']
    .map((name) => `/etc/${name}`)
    .filter((path) => existsSync(path))
    .map((path) => ({ from: realpathSync(path), at: path }))

export const openEgress = async (
  isOfOperator: boolean,
  { publicNetwork }: { publicNetwork: () => Promise<PublicNetwork> },
  scratch: string,
): Promise<Egress> => {
  if (isOfOperator)
    return { of: 'of the host', views: networkViews(['resolv.conf']), [Symbol.asyncDispose]: async () => {} }
  const network = await publicNetwork()
  const resolvers = join(scratch, 'resolv.conf')
  await writeFile(resolvers, network.resolvers.map((address) => `nameserver ${address}\n`).join(''), { mode: 0o644 })
  return {
    of: { netnsPath: network.netnsPath },
    views: [...networkViews([]), { from: resolvers, at: '/etc/resolv.conf' }],
    [Symbol.asyncDispose]: () => network[Symbol.asyncDispose](),
  }
}
