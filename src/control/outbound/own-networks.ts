// The networks that this host is a member of, and its gateways. Their addresses may be public, but from here they are reached
// behind every firewall that stands before the host, so what others name may not lead there.
import { BlockList } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { isPublicAddress, type Networks } from '#src/kit/networks.ts'
import { type NextNetwork, readNextNetworks } from './routes-of-host.ts'

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, 'address' | 'cidr'>[]>

/** A shorter prefix is no network of neighbours. */
const shortest = { ipv4: 8, ipv6: 32 }

/** What is not public is closed by itself, so only public networks are listed. */
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
