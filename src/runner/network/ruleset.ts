// The rules of one instance as nft text, without the state of any sandbox. Loading it again changes the rules in one
// transaction and keeps the elements of `slots` and `allowed`, so a restart never leaves a moment without rules.
import { linksOf, type Range, rangeText, tableOf } from './names.ts'

/** What no sandbox reaches, whatever its policy says: private, shared, loopback, link-local, multicast and reserved. */
const closedRanges = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
] as const

/** These stay closed even where the operator opens a private range that holds them. */
const neverOpened = ['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4'] as const

export type RulesetParts = {
  instance: string
  range: Range
  resolvers: readonly string[]
  /** Private blocks that the operator lets sandboxes reach. */
  opened: readonly string[]
}

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

export const rulesetText = ({ instance, range, resolvers, opened }: RulesetParts): string => {
  const table = tableOf(instance)
  const links = linksOf(instance)
  const dns = 'ip daddr @resolvers meta l4proto { tcp, udp } th dport 53'
  return [
    `add table inet ${table}`,
    ...setOf('resolvers', 'ipv4_addr', resolvers),
    ...setOf('opened', 'ipv4_addr', opened),
    ...setOf('closed', 'ipv4_addr', closedRanges),
    `add set inet ${table} allowed { type ipv4_addr . ipv4_addr; flags interval; }`,
    `add map inet ${table} slots { type ifname . ipv4_addr : verdict; }`,

    // The host's own addresses (also those that a published port would rewrite: this comes before such rewriting),
    // other sandboxes and what must never be opened come before what the operator opened.
    ...chainOf('guard', '', [
      'fib daddr type != unicast drop',
      `ip daddr { ${[...neverOpened, rangeText(range)].join(', ')} } drop`,
      'ip daddr @opened return',
      'ip daddr @closed drop',
    ]),
    ...chainOf('open', '', [`${dns} accept`, 'jump guard', 'accept']),
    ...chainOf('listed', '', [`${dns} accept`, 'jump guard', 'ip saddr . ip daddr @allowed accept', 'drop']),

    // Every packet that leaves a sandbox is judged here, also those of a connection that was allowed before: a policy
    // that gets stricter cuts at once. The key holds link and source address, so a made-up source matches nothing.
    ...chainOf('leaving', '{ type filter hook prerouting priority mangle; policy accept; }', [
      `iifname != ${links} return`,
      'meta nfproto != ipv4 drop',
      'iifname . ip saddr vmap @slots',
      'drop',
    ]),
    ...chainOf('arriving', '{ type filter hook forward priority filter; policy accept; }', [
      `oifname ${links} iifname ${links} drop`,
      `oifname ${links} ct state established,related accept`,
      `oifname ${links} drop`,
      `iifname ${links} tcp flags syn tcp option maxseg size set rt mtu`,
    ]),
    // The host itself: only its resolver, if that is one of its own addresses.
    ...chainOf('to_host', '{ type filter hook input priority filter; policy accept; }', [
      `iifname != ${links} return`,
      `${dns} accept`,
      'drop',
    ]),
    ...chainOf('from_host', '{ type filter hook output priority filter; policy accept; }', [
      `oifname != ${links} return`,
      'ct state established,related accept',
      'drop',
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

/** Removes the table and everything in it; true of a host that has none, too. */
export const removalText = (instance: string): string =>
  ['inet', 'arp']
    .flatMap((family) => [`add table ${family} ${tableOf(instance)}`, `delete table ${family} ${tableOf(instance)}`])
    .join('\n')
