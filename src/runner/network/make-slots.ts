// Makes and deletes slots, many slots by one start of the program `ip`. A slot is a network namespace and a pair of connected
// interfaces (veth). Each interface has a fixed hardware address and knows that of the other interface. Sandboxes therefore share
// no broadcast domain and cannot impersonate each other.
import { randomUUID } from 'node:crypto'
import { runCommand } from '#src/kit/run-command.ts'
import { addressOf, gatewayOf, hardwareAddress, linkName, netnsDir, netnsName, type Range } from './names.ts'
import { lockFile } from './notes.ts'

type Where = {
  instance: string
  range: Range
  mtu: number
  /** Random name of this runner. A runner makes slots only while its own name is in the lock file (`becomeMaker`). */
  maker: string
}

const outside = ({ instance, range, mtu }: Where, n: number) => {
  const [name, link, address] = [netnsName(instance, n), linkName(instance, n), addressOf(range, n)]
  const [host, sandbox] = [hardwareAddress(instance, n, 'host'), hardwareAddress(instance, n, 'sandbox')]
  return [
    `netns add ${name}`,
    `link add ${link} address ${host} mtu ${mtu} type veth peer name eth0 address ${sandbox} mtu ${mtu} netns ${name}`,
    `link set ${link} addrgenmode none up`,
    `neigh replace ${address} lladdr ${sandbox} dev ${link} nud permanent`,
    `route replace ${address}/32 dev ${link}`,
  ]
}

// Settings of a new namespace. Root in a sandbox has no privileges over this namespace, so low ports and ping are allowed for every
// user.
const settings = [
  '[ ! -e /proc/sys/net/ipv6/conf/all/disable_ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6',
  'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
  'echo "0 2147483647" > /proc/sys/net/ipv4/ping_group_range',
  // A send timestamp must not contain the sent packet. Otherwise a socket could keep sent packets in its queue of timestamps, in
  // uncharged memory.
  '[ ! -e /proc/sys/net/core/tstamp_allow_data ] || echo 0 > /proc/sys/net/core/tstamp_allow_data',
  // Memory for socket options is uncharged. The default would allow 128 KiB for each socket.
  '[ ! -e /proc/sys/net/core/optmem_max ] || echo 8192 > /proc/sys/net/core/optmem_max',
].join('; ')

/**
 * Limits incoming ping replies. Unread replies take uncharged memory, and the kernel does not show how much. A few small replies
 * per second always pass. All other replies together may take 8 MB.
 */
const echoes = `table ip alcove {
  chain arriving {
    type filter hook input priority filter; policy accept;
    icmp type echo-reply goto echoes
  }
  chain echoes {
    meta length <= 128 limit rate 2/second burst 20 packets accept
    quota until 8 mbytes accept
    drop
  }
}`

const inside = ({ instance, range }: Where, n: number) => {
  const gateway = gatewayOf(range)
  const batch = [
    'link set lo up',
    `addr add ${addressOf(range, n)}/32 dev eth0`,
    // The host and all sandboxes share the kernel's neighbour table. `arp off`: no sandbox can fill this table, because the kernel
    // can evict the sandbox's entries at once. With ARP, the entries would stay in a full table for seconds.
    'link set eth0 arp off up',
    `neigh replace ${gateway} lladdr ${hardwareAddress(instance, n, 'host')} dev eth0 nud permanent`,
    `route add ${gateway} dev eth0 scope link`,
    `route add default via ${gateway}`,
  ]
  return [
    `nsenter --net=${netnsDir}/${netnsName(instance, n)} sh -ec '${settings}; nft "${echoes}"; exec ip -batch -' <<'BATCH'`,
    ...batch,
    'BATCH',
  ]
}

/** Makes all slots of `numbers` or no slot. If one slot fails, the others are deleted before the error is thrown. */
export const makeSlots = async (where: Where, numbers: readonly number[], background: boolean) => {
  const script = [
    'set -e',
    `[ "$(cat ${lockFile(where.instance)})" = ${where.maker} ]`,
    "ip -batch - <<'BATCH'",
    ...numbers.flatMap((n) => outside(where, n)),
    'BATCH',
    ...numbers.flatMap((n) => inside(where, n)),
    '',
  ]
  try {
    // The process that makes slots holds the lock itself, because it may outlive a killed runner. The next runner waits for the
    // lock, and then writes its own name (`maker`) into the lock file. Processes of the killed runner that get the lock later find
    // that name and make nothing.
    await runCommand(['flock', lockFile(where.instance), 'sh', '-s'], { input: script.join('\n'), background })
  } catch (error) {
    await deleteSlots(where.instance, numbers)
    throw error
  }
}

/**
 * Waits until processes of earlier runners have stopped making slots. From then on, only this runner can make slots of the
 * instance. Returns this runner's random name (`maker`).
 */
export const becomeMaker = async (instance: string): Promise<string> => {
  const maker = randomUUID()
  const lock = lockFile(instance)
  await runCommand(['flock', lock, 'sh', '-c', 'printf %s "$1" > "$0"', lock, maker], { timeoutMs: 60_000 })
  return maker
}

/** Deletes slots: interfaces first, so that processes in the namespaces lose the network at once. Missing parts are no error. */
export const deleteSlots = async (instance: string, numbers: readonly number[]) => {
  if (numbers.length === 0) return
  const input = [
    ...numbers.map((n) => `link del ${linkName(instance, n)}`),
    ...numbers.map((n) => `netns del ${netnsName(instance, n)}`),
  ].join('\n')
  // `ip` fails if a network interface or namespace does not exist, so its exit code is ignored. The caller checks what is left.
  await runCommand(['ip', '-force', '-batch', '-'], { input: `${input}\n` }).catch(() => {})
}
