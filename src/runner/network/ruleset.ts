// Writes, as nft text, the firewall rules that all sandboxes of an instance share. The text replaces an earlier runner's rules in
// one transaction, so rules apply at every moment. The set elements and chains of single sandboxes stay in the kernel.
import { users } from '#src/kit/confined.ts'
import { closedRanges, neverOpened } from './closed.ts'
import { gatewayOf, linksOf, type Range, rangeText, tableOf } from './names.ts'

export type RulesetParts = {
  instance: string
  range: Range
  resolvers: readonly string[]
  /** Networks that the operator opens for sandboxes although they are private or belong to the host. */
  opened: readonly string[]
  /** Number of connections that the kernel's connection table can contain. Default: read from the kernel. */
  connectionTableSize?: number | undefined
}

/** Values in the firewall rules that may change while the runner runs. */
export type Present = {
  /** Ports of Alcove's resolver. Undefined while the resolver does not run. */
  ports?: Ports | undefined
  /** Port of the proxy for secrets. Undefined while the proxy does not run. */
  egressPort?: number | undefined
  /** The host's gateways and the networks to which the host belongs. */
  ofHost: readonly string[]
  connections: ConnectionBounds
}

export type Ports = { udp: number; tcp: number }

/** Maximum numbers of tracked connections: of one sandbox, and of all sandboxes of one organization. */
export type ConnectionBounds = { sandbox: number; organization: number }

export const mostConnections = 16_384

/**
 * Computes the maximum numbers of tracked connections. The host and all sandboxes share the kernel's connection table, and a full
 * table drops new connections. One organization may therefore use at most an eighth of this table.
 */
export const connectionBounds = (tableSize: number): ConnectionBounds => {
  const organization = Math.max(64, Math.floor(tableSize / 8))
  return { organization, sandbox: Math.min(mostConnections, Math.floor(organization / 2)) }
}

/**
 * Limit of packet fragments from one organization. Fragments wait for up to 30 s in memory that the host and all sandboxes share (4
 * MiB). Programs hardly ever send fragments, because sandboxes have the host's MTU.
 */
const fragments = 'limit rate over 10/second burst 64 packets'

/** Limit of refusals that are sent to one sandbox. Above this limit, forbidden packets are dropped without an answer. */
const refusals = 'limit rate over 100/second burst 200 packets'

/** Maximum number of addresses in a set of the instance's nft table. A runner has at most this many addresses for sandboxes. */
const mostAddresses = 4_096

/**
 * Maximum number of organizations in a set: one for each slot, and organizations whose last connections the kernel still tracks.
 */
const mostOrganizations = 16_384

const port53 = 'meta l4proto { tcp, udp } th dport 53'

const tooManyQuestions = `${port53} add @questions { ip saddr limit rate over 200/second burst 400 packets } drop`

const askRules = (range: Range, ports: Ports) =>
  (['udp', 'tcp'] as const).map(
    (protocol) => `iifname . ip saddr @askers ${protocol} dport 53 dnat ip to ${gatewayOf(range)}:${ports[protocol]}`,
  )

/**
 * Matches connections to port 443 from sandboxes with secrets. Rules with this text apply only after the sandbox's policy has
 * allowed the connection.
 */
const proxied = 'iifname . ip saddr @proxied tcp dport 443'

const egressRules = (range: Range, port: number | undefined) => [
  ...(port === undefined ? [] : [`${proxied} dnat ip to ${gatewayOf(range)}:${port}`]),
  `${proxied} drop`,
]

const setOf = (name: string, type: string, elements: readonly string[]) => [
  `add set inet $T ${name} { type ${type}; flags interval; auto-merge; }`,
  `flush set inet $T ${name}`,
  ...(elements.length === 0 ? [] : [`add element inet $T ${name} { ${elements.join(', ')} }`]),
]

const chainOf = (name: string, head: string, rules: readonly string[]) => [
  `add chain inet $T ${name} ${head}`,
  `flush chain inet $T ${name}`,
  ...rules.map((rule) => `add rule inet $T ${name} ${rule}`),
]

export const rulesetText = ({ instance, range, resolvers, opened }: RulesetParts, present: Present): string => {
  const { ports: resolverPorts, egressPort, ofHost, connections } = present
  const table = tableOf(instance)
  const links = linksOf(instance)
  const dns = `ip daddr @resolvers ${port53}`
  // These rules limit tracked connections. While the kernel counts a new connection, the connection's mark is the organization's
  // number. Afterwards, the mark is 0.
  const tooMany = [
    `iifname ${links} ct state new add @connections { ip saddr ct count over ${connections.sandbox} } drop`,
    `iifname ${links} ct state new ct mark set iifname . ip saddr map @organizations`,
    `iifname ${links} ct state new ct mark != 0 add @shares { ct mark ct count over ${connections.organization} } drop`,
    `iifname ${links} ct state new ct mark set 0`,
  ]
  return [
    `add table inet ${table}`,
    ...setOf('resolvers', 'ipv4_addr', resolvers),
    ...setOf('opened', 'ipv4_addr', opened),
    ...setOf('closed', 'ipv4_addr', closedRanges),
    ...setOf('of_host', 'ipv4_addr', ofHost),
    `add set inet ${table} allowed { type ipv4_addr . ipv4_addr; flags interval; }`,
    `add set inet ${table} askers { type ifname . ipv4_addr; }`,
    `add set inet ${table} proxied { type ifname . ipv4_addr; }`,
    `add set inet ${table} connections { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} refusals { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} questions { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} shares { type mark; size ${mostOrganizations}; flags dynamic; }`,
    `add set inet ${table} fragments { type mark; size ${mostOrganizations}; flags dynamic; }`,
    `add map inet ${table} organizations { type ifname . ipv4_addr : mark; }`,
    `add map inet ${table} slots { type ifname . ipv4_addr : verdict; }`,

    'add chain inet $T refuse',
    // The chain `guard` refuses packets to the host and to other sandboxes. It also refuses packets to closed networks, unless the
    // operator has opened the network; networks of `neverOpened` stay closed. The chain runs before rules that replace the
    // destination, such as Docker's rules for published ports, so it sees the original destination.
    ...chainOf('guard', '', [
      'fib daddr type { broadcast, multicast, anycast } drop',
      'fib daddr type != unicast goto refuse',
      `ip daddr { ${[...neverOpened, rangeText(range)].join(', ')} } goto refuse`,
      'ip daddr @opened return',
      'ip daddr @closed goto refuse',
      'ip daddr @of_host goto refuse',
    ]),
    ...chainOf('open', '', [`${dns} accept`, 'jump guard', 'accept']),
    ...chainOf('listed', '', [`${dns} accept`, 'jump guard', 'ip saddr . ip daddr @allowed accept', 'goto refuse']),
    ...chainOf('blocked', '', [tooManyQuestions, `${port53} accept`, 'goto refuse']),

    // A refused packet gets an answer, so that the program in the sandbox fails immediately instead of waiting for its timeout.
    ...chainOf('refuse', '', [
      `add @refusals { ip saddr ${refusals} } drop`,
      'meta l4proto tcp reject with tcp reset',
      'reject with icmp admin-prohibited',
    ]),

    // This hook runs before the kernel reassembles fragments, so the rules here can limit fragments.
    ...chainOf('pieces', '{ type filter hook prerouting priority -450; policy accept; }', [
      `iifname != ${links} return`,
      'meta nfproto != ipv4 drop',
      'ip frag-off & 0x3fff == 0 return',
      'meta mark set iifname . ip saddr map @organizations',
      `add @fragments { meta mark ${fragments} } drop`,
      'meta mark set 0',
    ]),
    // Checks every packet that leaves a sandbox. A stricter policy therefore also stops connections that are already open.
    // Interface and source address must match together, so a packet with a forged address is dropped.
    ...chainOf('leaving', '{ type filter hook prerouting priority mangle; policy accept; }', [
      `iifname != ${links} return`,
      'meta nfproto != ipv4 drop',
      'iifname . ip saddr vmap @slots',
      'drop',
    ]),
    ...chainOf('arriving', '{ type filter hook forward priority filter; policy accept; }', [
      // Before a sandbox got its list of domains, it may have opened a connection to a resolver other than Alcove's. This rule
      // drops the packets of that connection.
      `iifname . ip saddr @askers ${port53} drop`,
      `oifname ${links} iifname ${links} drop`,
      `oifname ${links} ct state established,related accept`,
      `oifname ${links} drop`,
      ...tooMany,
      `iifname ${links} tcp flags syn tcp option maxseg size set rt mtu`,
    ]),
    // The set `askers` has sandboxes with a list of domains, or with all traffic blocked. DNS questions of these sandboxes go to
    // Alcove's resolver. While the resolver does not run, these questions are dropped.
    ...chainOf('ask', '{ type nat hook prerouting priority dstnat - 1; policy accept; }', [
      ...(resolverPorts === undefined ? [] : askRules(range, resolverPorts)),
      `iifname . ip saddr @askers ${port53} drop`,
    ]),
    // If a sandbox has secrets, its connections to port 443 go to the proxy for secrets. The sandbox's policy has checked the
    // original destination before.
    ...chainOf(
      'to_egress',
      '{ type nat hook prerouting priority dstnat - 1; policy accept; }',
      egressRules(range, egressPort),
    ),
    // Rules for packets to the host itself. A sandbox may reach only Alcove's resolver, the proxy for secrets, and the host's own
    // resolver.
    ...chainOf('to_host', '{ type filter hook input priority filter; policy accept; }', [
      `iifname != ${links} ip daddr ${gatewayOf(range)} drop`,
      `iifname != ${links} return`,
      ...tooMany,
      `iifname . ip saddr @askers ip daddr ${gatewayOf(range)} ct status dnat accept`,
      `iifname . ip saddr @proxied ip daddr ${gatewayOf(range)} ct status dnat meta l4proto tcp ct original proto-dst 443 accept`,
      'iifname . ip saddr @askers drop',
      `${dns} accept`,
      'drop',
    ]),
    ...chainOf('from_host', '{ type filter hook output priority filter; policy accept; }', [
      `oifname != ${links} return`,
      'icmp type destination-unreachable accept',
      'ct state established,related accept',
      'drop',
    ]),
    // Alcove's resolver reads input of hostile programs. The resolver may therefore only answer sandboxes and ask other resolvers.
    // The rules match only packets from the resolver's Linux user.
    ...chainOf('from_resolver', '{ type filter hook output priority filter; policy accept; }', [
      `meta skuid ${users.resolver} ct direction original meta l4proto != { tcp, udp } drop`,
      `meta skuid ${users.resolver} ct direction original meta l4proto { tcp, udp } th dport != 53 drop`,
    ]),
    // The proxy for secrets reads input of hostile programs and servers. This proxy may only answer sandboxes and connect to port
    // 443 of other hosts.
    ...chainOf('from_egress', '{ type filter hook output priority filter; policy accept; }', [
      `meta skuid ${users.egress} ct direction original oifname "lo" drop`,
      `meta skuid ${users.egress} ct direction original meta l4proto != tcp drop`,
      `meta skuid ${users.egress} ct direction original tcp dport != 443 drop`,
    ]),
    ...chainOf('nat', '{ type nat hook postrouting priority srcnat; policy accept; }', [
      `ip saddr ${rangeText(range)} oifname != ${links} masquerade`,
    ]),

    `add table arp ${table}`,
    `add chain arp ${table} incoming { type filter hook input priority filter; policy accept; }`,
    `flush chain arp ${table} incoming`,
    `add rule arp ${table} incoming iifname ${links} drop`,
    '',
  ]
    .join('\n')
    .replaceAll('$T', table)
}

/** Returns the text for nft that fills the set `of_host`: networks of the host that sandboxes may not reach. */
export const ofHostText = (instance: string, ofHost: readonly string[]): string =>
  setOf('of_host', 'ipv4_addr', ofHost).join('\n').replaceAll('$T', tableOf(instance))

/**
 * Returns the nft text that redirects DNS questions to the ports of Alcove's resolver, for slots with a list of domains or with all
 * traffic blocked.
 */
export const askText = (instance: string, range: Range, ports: Ports): string => {
  const chain = `inet ${tableOf(instance)} ask`
  return [
    `flush chain ${chain}`,
    ...askRules(range, ports).map((rule) => `add rule ${chain} ${rule}`),
    `add rule ${chain} iifname . ip saddr @askers ${port53} drop`,
  ].join('\n')
}

/** Returns the nft text that redirects connections of slots with secrets to the port of the proxy for secrets. */
export const egressText = (instance: string, range: Range, port: number): string => {
  const chain = `inet ${tableOf(instance)} to_egress`
  return [`flush chain ${chain}`, ...egressRules(range, port).map((rule) => `add rule ${chain} ${rule}`)].join('\n')
}

/** Returns a name that two things share: a slot's chain for domains, and the slot's set of opened addresses. */
export const namedOf = (slot: number) => `named${slot}`

/**
 * Maximum number of elements in a slot's set of opened addresses. A set never gets so many elements, because `openLimit` in
 * opened-addresses.ts is far lower.
 */
const namedSize = 65_536

/** Each packet on a connection keeps the destination address open for at least this many seconds. */
const inUseSeconds = 600

/**
 * Returns the nft text for a slot with a list of domains. The text has the slot's chain, and the set of addresses that DNS answers
 * open. The kernel removes an address after its timeout. Traffic on a connection extends the timeout. Loading the text again keeps
 * the set's addresses.
 */
export const namedText = (instance: string, slot: number): string[] => {
  const table = tableOf(instance)
  const name = namedOf(slot)
  return [
    `add set inet ${table} ${name} { type ipv4_addr; flags dynamic,timeout; size ${namedSize}; }`,
    `add chain inet ${table} ${name}`,
    `flush chain inet ${table} ${name}`,
    ...[
      tooManyQuestions,
      `${port53} accept`,
      'jump guard',
      `ip daddr @${name} ct state established update @${name} { ip daddr timeout ${inUseSeconds}s } accept`,
      `ip daddr @${name} accept`,
      'ip saddr . ip daddr @allowed accept',
      'goto refuse',
    ].map((rule) => `add rule inet ${table} ${name} ${rule}`),
  ]
}

export const namedRemovalText = (instance: string, slot: number): string[] =>
  ['flush chain', 'delete chain', 'delete set'].map((verb) => `${verb} inet ${tableOf(instance)} ${namedOf(slot)}`)

/**
 * Returns the nft text that opens addresses for at least `seconds`. Each address is added, deleted and added again, because old
 * kernels do not change the timeout of an address in the set.
 */
export const openingText = (instance: string, slot: number, addresses: readonly string[], seconds: number): string => {
  const set = `inet ${tableOf(instance)} ${namedOf(slot)}`
  const bare = addresses.join(', ')
  const timed = addresses.map((address) => `${address} timeout ${seconds}s`).join(', ')
  return [
    `add element ${set} { ${bare} }`,
    `delete element ${set} { ${bare} }`,
    `add element ${set} { ${timed} }`,
  ].join('\n')
}

/**
 * Returns the nft text that removes the instance's tables and everything in them. The text adds each table before its removal, so
 * that a missing table is no error.
 */
export const removalText = (instance: string): string =>
  ['inet', 'arp']
    .flatMap((family) => [`add table ${family} ${tableOf(instance)}`, `delete table ${family} ${tableOf(instance)}`])
    .join('\n')
