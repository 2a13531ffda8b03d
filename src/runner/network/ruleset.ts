// The rules of one instance as nft text, without the state of any sandbox. Loading it again changes the rules in one
// transaction and keeps the elements of `slots`, `allowed` and `askers` and the chains of slots with a list of domains, so
// a restart never leaves a moment without rules.
import { users } from '#src/kit/confined.ts'
import { closedRanges, neverOpened } from './closed.ts'
import { gatewayOf, linksOf, type Range, rangeText, tableOf } from './names.ts'

export type RulesetParts = {
  instance: string
  range: Range
  resolvers: readonly string[]
  /** Networks that the operator lets sandboxes reach although they are not public or the host's own. */
  opened: readonly string[]
  /** How many connections the kernel keeps; absent: it is asked. */
  connectionTableSize?: number | undefined
}

/** What changes while the table is there. */
export type Present = {
  /** Our own resolver listens here; absent while it does not run. */
  ports?: Ports | undefined
  /** The host's own networks and gateways. */
  ofHost: readonly string[]
  connections: ConnectionBounds
}

/** Where our own resolver listens. */
export type Ports = { udp: number; tcp: number }

/** Connections that the kernel keeps at a time, of one sandbox and of all sandboxes of one organization. */
export type ConnectionBounds = { sandbox: number; organization: number }

export const mostConnections = 16_384

/**
 * The host and all sandboxes share what the kernel keeps in all (`nf_conntrack_max`, 262144 on most); when that is full it
 * drops what is new. So an organization has an eighth of it.
 */
export const connectionBounds = (tableSize: number): ConnectionBounds => {
  const organization = Math.max(64, Math.floor(tableSize / 8))
  return { organization, sandbox: Math.min(mostConnections, Math.floor(organization / 2)) }
}

/**
 * Pieces of packets wait in memory that the host and all sandboxes share (4 MiB, for 30 seconds). What sandboxes send
 * fits the way out, so programs hardly ever send pieces.
 */
const fragments = 'limit rate over 10/second burst 64 packets'

/** Refusals that one sandbox is told; what it sends beyond that is dropped in silence. */
const refusals = 'limit rate over 100/second burst 200 packets'

/** Most addresses: those that there are for sandboxes. */
const mostAddresses = 4_096

/** Most organizations: one for each slot, and some whose last connections are still remembered. */
const mostOrganizations = 16_384

const port53 = 'meta l4proto { tcp, udp } th dport 53'

const tooManyQuestions = `${port53} add @questions { ip saddr limit rate over 200/second burst 400 packets } drop`

const askRules = (range: Range, ports: Ports) =>
  (['udp', 'tcp'] as const).map(
    (protocol) => `iifname . ip saddr @askers ${protocol} dport 53 dnat ip to ${gatewayOf(range)}:${ports[protocol]}`,
  )

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
  const { ports: resolverPorts, ofHost, connections } = present
  const table = tableOf(instance)
  const links = linksOf(instance)
  const dns = `ip daddr @resolvers ${port53}`
  // The mark of a connection names its organization for as long as it takes to count it.
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
    `add set inet ${table} connections { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} refusals { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} questions { type ipv4_addr; size ${mostAddresses}; flags dynamic; }`,
    `add set inet ${table} shares { type mark; size ${mostOrganizations}; flags dynamic; }`,
    `add set inet ${table} fragments { type mark; size ${mostOrganizations}; flags dynamic; }`,
    `add map inet ${table} organizations { type ifname . ipv4_addr : mark; }`,
    `add map inet ${table} slots { type ifname . ipv4_addr : verdict; }`,

    'add chain inet $T refuse',
    // The host's own addresses (also those that a published port would rewrite: this comes before such rewriting),
    // other sandboxes and what must never be opened come before what the operator opened.
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

    // Programs inside learn at once that they may not go there, instead of waiting for an answer.
    ...chainOf('refuse', '', [
      `add @refusals { ip saddr ${refusals} } drop`,
      'meta l4proto tcp reject with tcp reset',
      'reject with icmp admin-prohibited',
    ]),

    // This comes before the kernel puts pieces of packets together.
    ...chainOf('pieces', '{ type filter hook prerouting priority -450; policy accept; }', [
      `iifname != ${links} return`,
      'meta nfproto != ipv4 drop',
      'ip frag-off & 0x3fff == 0 return',
      'meta mark set iifname . ip saddr map @organizations',
      `add @fragments { meta mark ${fragments} } drop`,
      'meta mark set 0',
    ]),
    // Every packet that leaves a sandbox is judged here, also those of a connection that was allowed before: a policy
    // that gets stricter cuts at once. The key holds link and source address, so a made-up source matches nothing.
    ...chainOf('leaving', '{ type filter hook prerouting priority mangle; policy accept; }', [
      `iifname != ${links} return`,
      'meta nfproto != ipv4 drop',
      'iifname . ip saddr vmap @slots',
      'drop',
    ]),
    ...chainOf('arriving', '{ type filter hook forward priority filter; policy accept; }', [
      // Names are asked of our resolver and nobody else, also by a conversation from before the list of domains.
      `iifname . ip saddr @askers ${port53} drop`,
      `oifname ${links} iifname ${links} drop`,
      `oifname ${links} ct state established,related accept`,
      `oifname ${links} drop`,
      ...tooMany,
      `iifname ${links} tcp flags syn tcp option maxseg size set rt mtu`,
    ]),
    // A sandbox with a list of domains always reaches our resolver, whichever one it asks; if ours is away, none.
    ...chainOf('ask', '{ type nat hook prerouting priority dstnat - 1; policy accept; }', [
      ...(resolverPorts === undefined ? [] : askRules(range, resolverPorts)),
      `iifname . ip saddr @askers ${port53} drop`,
    ]),
    // The host itself: only our resolver, and its own if that is one of the host's addresses.
    ...chainOf('to_host', '{ type filter hook input priority filter; policy accept; }', [
      `iifname != ${links} ip daddr ${gatewayOf(range)} drop`,
      `iifname != ${links} return`,
      ...tooMany,
      `iifname . ip saddr @askers ip daddr ${gatewayOf(range)} ct status dnat accept`,
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
    // Our resolver reads what hostile programs write. It answers, and asks other resolvers; nothing else of the host's network,
    // not even its loopback, is its business. Each rule names its user, as packets without a socket have none.
    ...chainOf('from_resolver', '{ type filter hook output priority filter; policy accept; }', [
      `meta skuid ${users.resolver} ct direction original meta l4proto != { tcp, udp } drop`,
      `meta skuid ${users.resolver} ct direction original meta l4proto { tcp, udp } th dport != 53 drop`,
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

/** Closes the host's networks as they are now. */
export const ofHostText = (instance: string, ofHost: readonly string[]): string =>
  setOf('of_host', 'ipv4_addr', ofHost).join('\n').replaceAll('$T', tableOf(instance))

/** Sends the questions of those with a list of domains to our resolver. */
export const askText = (instance: string, range: Range, ports: Ports): string => {
  const chain = `inet ${tableOf(instance)} ask`
  return [
    `flush chain ${chain}`,
    ...askRules(range, ports).map((rule) => `add rule ${chain} ${rule}`),
    `add rule ${chain} iifname . ip saddr @askers ${port53} drop`,
  ].join('\n')
}

/** Names the chain and the set of a slot that has a list of domains. */
export const namedOf = (slot: number) => `named${slot}`

/** Most addresses that one slot's set holds; `openLimit` is reached long before. */
const namedSize = 65_536

/** How long an address stays open after the last packet to it, of a conversation that it answers. Never less than a name opens. */
const inUseSeconds = 600

/**
 * The chain of one slot with a list of domains. Its set holds what its names were answered with; the kernel takes an
 * address out when its time is over, unless a conversation with it goes on. Loading it again keeps the set.
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

/** Opens addresses for at least this long. Added, taken out and added again, because an old kernel keeps the old time. */
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

/** Commands that remove the table and everything in it. They also succeed where there is none. */
export const removalText = (instance: string): string =>
  ['inet', 'arp']
    .flatMap((family) => [`add table ${family} ${tableOf(instance)}`, `delete table ${family} ${tableOf(instance)}`])
    .join('\n')
