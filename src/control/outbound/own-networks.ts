// The networks of this host, and its gateways. Their addresses may be public, but this host reaches them without
// passing the firewall in front of it. So URLs given by users may not lead to these networks.
import { BlockList } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { isPublicAddress, type Networks } from '#src/kit/networks.ts'
import { type NextNetwork, readNextNetworks } from './routes-of-host.ts'

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, 'address' | 'cidr'>[]>

/**
 * Shortest prefix of a local network. A network with a shorter prefix is too large to be a local network and is
 * ignored.
 */
const shortest = { ipv4: 8, ipv6: 32 }

/** Reads the networks of this host. Lists only public networks, because private ones are refused anyway. */
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
