// Finds the network slots of an instance that exist on the host now.
import { readdir } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { netnsDir, slotOfLink, slotOfNetns } from './names.ts'

type Link = { ifname: string; mtu: number }

type SlotsOnHost = {
  /** Numbers of the slots that have both a network namespace and a network interface on the host. */
  whole: Set<number>
  /** Numbers of the slots that have a network namespace, a network interface on the host, or both. */
  any: Set<number>
}

const linksNow = async () => JSON.parse(await runCommand(['ip', '-j', 'link', 'show'])) as Link[]

export const lookForSlots = async (instance: string): Promise<SlotsOnHost> => {
  const names = await readdir(netnsDir).catch(() => [])
  const namespaces = new Set(names.map((name) => slotOfNetns(instance, name)).filter((n) => n !== undefined))
  const links = new Set(
    (await linksNow()).map(({ ifname }) => slotOfLink(instance, ifname)).filter((n) => n !== undefined),
  )
  return { whole: namespaces.intersection(links), any: namespaces.union(links) }
}

/**
 * Returns the packet size (MTU) of the host's default route. Interfaces of sandboxes get the same MTU, so that packets need no
 * fragmentation.
 */
export const mtuOfWayOut = async (): Promise<number> => {
  const routes = JSON.parse(await runCommand(['ip', '-j', '-4', 'route', 'show', 'default'])) as { dev?: string }[]
  const mtu = (await linksNow()).find(({ ifname }) => ifname === routes[0]?.dev)?.mtu ?? 1500
  return Math.min(mtu, 1500)
}
