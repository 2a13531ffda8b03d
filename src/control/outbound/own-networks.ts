// Finds this host's networks and gateways, which control refuses in a user's URL. Their addresses may be public, but this host
// reaches them without passing a firewall.
import { BlockList } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { isPublicAddress, type Networks } from '#src/kit/networks.ts'
import { type NextNetwork, readNextNetworks } from './routes-of-host.ts'

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, 'address' | 'cidr'>[]>

/** Shortest prefix of a network that counts as local. Larger networks are ignored. */
const shortest = { ipv4: 8, ipv6: 32 }

/** Lists the networks of this host that have public addresses. target.ts refuses private addresses anyway. */
export const readOwnNetworks = (
  interfaces: Interfaces = networkInterfaces(),
  next: readonly NextNetwork[] = readNextNetworks(),
): Networks => {
  const list = new BlockList()
  const add = (address: string, bits: number) => {
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    if (bits >= shortest[family] && isPublicAddress(address)) list.addSubnet(address, bits, family)
  }
  for (const { address, cidr } of Object.values(interfaces).flatMap((infos = []) => infos)) {
    add(address, address.includes(':') ? 128 : 32)
    add(address, Number(cidr?.split('/')[1]))
  }
  for (const { address, bits } of next) add(address, bits)
  return list
}
