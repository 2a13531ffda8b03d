// The networks that this host is a member of. Their addresses may be public, but from here they are reached behind every firewall
// that stands before the host, so what others name may not lead there.
import { BlockList } from 'node:net'
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os'
import { isPublicAddress, type Networks } from '#src/kit/networks.ts'

type Interfaces = NodeJS.Dict<Pick<NetworkInterfaceInfo, 'address' | 'cidr'>[]>

/** A shorter prefix is no network of neighbours. */
const shortest = { ipv4: 8, ipv6: 32 }

/** What is not public is closed by itself, so only public networks are listed. */
export const readOwnNetworks = (interfaces: Interfaces = networkInterfaces()): Networks => {
  const list = new BlockList()
  for (const { address, cidr } of Object.values(interfaces).flatMap((infos = []) => infos)) {
    if (!isPublicAddress(address)) continue
    const family = address.includes(':') ? 'ipv6' : 'ipv4'
    const bits = Number(cidr?.split('/')[1])
    list.addAddress(address, family)
    if (bits >= shortest[family]) list.addSubnet(address, bits, family)
  }
  return list
}
