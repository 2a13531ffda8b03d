// Makes and deletes slots: a network namespace, a link between it and the host, and their settings; many at once, by few
// processes. The link is point to point: its two ends have fixed hardware addresses and know each other's, so there is no
// broadcast domain that sandboxes share and nothing that one could claim to be.
import { runCommand } from '#src/kit/run-command.ts'
import { addressOf, gatewayOf, hardwareAddress, linkName, netnsDir, netnsName, type Range } from './names.ts'
import { lockFile } from './notes.ts'

type Where = { instance: string; range: Range; mtu: number }

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

// Root inside the sandbox is not root over this namespace, so low ports and ping are opened to every user of it.
const settings = [
  '[ ! -e /proc/sys/net/ipv6/conf/all/disable_ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6',
  'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start',
  'echo "0 2147483647" > /proc/sys/net/ipv4/ping_group_range',
  // Otherwise packets wait in the queue of a socket that asks for their sending times, and count as nobody's memory.
  '[ ! -e /proc/sys/net/core/tstamp_allow_data ] || echo 0 > /proc/sys/net/core/tstamp_allow_data',
  // What options of a socket keep counts as nobody's memory. The usual bound for each socket is 128 KiB, 30 times what it costs itself.
  '[ ! -e /proc/sys/net/core/optmem_max ] || echo 8192 > /proc/sys/net/core/optmem_max',
].join('; ')

/**
 * Answers to ping that nobody reads count as nobody's memory, and a socket that has let go of its peer is in no table that would tell
 * how much it holds. So what arrives is bounded: small ones at leisure always, all others together by a quota.
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
    // The kernel's table of neighbours is one for the host and all sandboxes. Those of a link without ARP are forgotten as soon as
    // it is full; others stay for seconds, and one sandbox could keep it full.
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

/** All or none: what a failed batch has made is deleted before this throws. */
export const makeSlots = async (where: Where, numbers: readonly number[], background: boolean) => {
  const script = [
    'set -e',
    "ip -batch - <<'BATCH'",
    ...numbers.flatMap((n) => outside(where, n)),
    'BATCH',
    ...numbers.flatMap((n) => inside(where, n)),
    '',
  ]
  try {
    // Under a lock, because these programs go on for a moment when the runner is killed; its successor waits for them.
    await runCommand(['flock', lockFile(where.instance), 'sh', '-s'], { input: script.join('\n'), background })
  } catch (error) {
    await deleteSlots(where.instance, numbers)
    throw error
  }
}

/** Resolves when nobody makes slots of this instance any more. */
export const waitForMakers = async (instance: string) => {
  await runCommand(['flock', lockFile(instance), 'true'], { timeoutMs: 60_000 })
}

/** Removes slots. Their links go first, so processes inside lose the network at once. Missing parts are no error. */
export const deleteSlots = async (instance: string, numbers: readonly number[]) => {
  if (numbers.length === 0) return
  const input = [
    ...numbers.map((n) => `link del ${linkName(instance, n)}`),
    ...numbers.map((n) => `netns del ${netnsName(instance, n)}`),
  ].join('\n')
  // It exits with an error for each thing that was not there; whether anything is left is asked afterwards.
  await runCommand(['ip', '-force', '-batch', '-'], { input: `${input}\n` }).catch(() => {})
}
