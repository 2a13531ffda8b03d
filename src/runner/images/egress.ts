// The network for downloads from addresses that callers choose. This network reaches neither the host nor a private or link-local
// address, even if a public name resolves to such an address. Downloads from registries that the operator has named use the host's
// network.
import { existsSync, realpathSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Job, View } from './workshop.ts'

/** A network namespace from which only public addresses and the addresses in `resolvers` can be reached. */
export type PublicNetwork = AsyncDisposable & { netnsPath: string; resolvers: readonly string[] }

export type Egress = AsyncDisposable & { of: Job['network']; views: readonly View[] }

/** Returns the files of the host's `/etc` that a downloading program needs to resolve host names and to verify certificates. */
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
