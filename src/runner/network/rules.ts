// Makes the firewall rules of a slot from the sandbox's policy, and reads these rules from the kernel after a restart.
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { type Cidr, parseCidr, withoutNested } from './cidr.ts'
import { domainLimit, isDomain } from './dns/domains.ts'
import { addressOf, type Range, slotOfLink, tableOf, toDotted } from './names.ts'
import { namedOf } from './ruleset.ts'

/**
 * What a slot may reach. `drop`: nothing. `open`: every address outside of the closed networks (closed.ts). `listed`: only CIDR
 * blocks. `named`: CIDR blocks and domains.
 */
export type Rule = (
  | { verdict: 'drop' | 'open' }
  | { verdict: 'listed'; cidrs: readonly string[] }
  /** `domains`: the names that the sandbox may reach. Undefined after a restart, because the kernel does not store names. */
  | { verdict: 'named'; cidrs: readonly string[]; domains: readonly string[] | undefined }
) & {
  /** Whether connections to port 443 go through the proxy for secrets (src/egress). */
  isProxied?: true
}

export const openToAll: Rule = { verdict: 'open' }

const allowListLimit = 10

const checkAllowList = (allowList: readonly string[]): Cidr[] => {
  if (allowList.length > allowListLimit) throw new RangeError(`an allow list has at most ${allowListLimit} blocks`)
  return allowList.map((text) => {
    const block = parseCidr(text)
    if (block === undefined) throw new RangeError(`not an IPv4 CIDR block: ${text}`)
    return block
  })
}

const checkDomains = (domains: readonly string[]): readonly string[] => {
  if (domains.length > domainLimit) throw new RangeError(`a list of domains has at most ${domainLimit}`)
  const wrong = domains.find((domain) => !isDomain(domain))
  if (wrong !== undefined) throw new RangeError(`not a domain: ${wrong}`)
  return [...new Set(domains)].sort()
}

export const ruleOf = ({ hasSecrets = false, ...policy }: NetworkPolicy): Rule => {
  const rule = verdictOf(policy)
  return hasSecrets ? { ...rule, isProxied: true } : rule
}

const verdictOf = ({ blockAll, allowList, domains = null }: NetworkPolicy): Rule => {
  const blocks = allowList === null ? [] : withoutNested(checkAllowList(allowList))
  const names = domains === null ? null : checkDomains(domains)
  if (blockAll) return { verdict: 'drop' }
  if ((allowList === null && names === null) || blocks.some((block) => block.bits === 0)) return openToAll
  const cidrs = blocks.map(({ base, bits }) => `${toDotted(base)}/${bits}`)
  return names === null ? { verdict: 'listed', cidrs } : { verdict: 'named', cidrs, domains: names }
}

export const cidrsOf = (rule: Rule) => ('cidrs' in rule ? rule.cidrs : [])

/** The domains of a rule. Undefined if the rule has no list of domains, or if the list is unknown after a restart. */
export const domainsOf = (rule: Rule | undefined) => (rule?.verdict === 'named' ? rule.domains : undefined)

export const isSame = (a: Rule | undefined, b: Rule) =>
  a?.verdict === b.verdict &&
  a.isProxied === b.isProxied &&
  cidrsOf(a).join() === cidrsOf(b).join() &&
  domainsOf(a)?.join() === domainsOf(b)?.join()

export const verdictText = (slot: number, { verdict }: Rule) =>
  `goto ${verdict === 'named' ? namedOf(slot) : verdict === 'drop' ? 'blocked' : verdict}`

type Verdict = { drop: null } | { goto: { target: string } }
type Destination = string | { prefix: { addr: string; len: number } }
type Listing<E> = { nftables: ({ map?: { elem?: E[] } } & { set?: { elem?: E[] } })[] }

const elementsOf = async <E>(kind: 'map' | 'set', table: string, name: string): Promise<E[]> => {
  const listing = JSON.parse(await runCommand(['nft', '-j', 'list', kind, 'inet', table, name])) as Listing<E>
  return listing.nftables.flatMap((item) => item[kind]?.elem ?? [])
}

/** Reads the rules of all slots from Alcove's nft table. */
export const readRules = async (instance: string, range: Range): Promise<Map<number, Rule>> => {
  const table = tableOf(instance)
  const slots = await elementsOf<[{ concat: [string, string] }, Verdict]>('map', table, 'slots')
  const proxied = await elementsOf<{ concat: [string, string] }>('set', table, 'proxied')
  const allowed = await elementsOf<{ concat: [string, Destination] }>('set', table, 'allowed')

  const allowedOf = (address: string) =>
    allowed
      .filter(({ concat }) => concat[0] === address)
      .map(({ concat: [, to] }) => (typeof to === 'string' ? `${to}/32` : `${to.prefix.addr}/${to.prefix.len}`))

  const ruleFrom = (slot: number, address: string, verdict: Verdict): Rule => {
    const target = 'goto' in verdict ? verdict.goto.target : undefined
    if (target === 'open') return openToAll
    if (target === 'listed') return { verdict: 'listed', cidrs: allowedOf(address) }
    if (target === namedOf(slot)) return { verdict: 'named', cidrs: allowedOf(address), domains: undefined }
    return { verdict: 'drop' }
  }

  const rules = new Map<number, Rule>()
  for (const [{ concat: key }, verdict] of slots) {
    const slot = slotOfLink(instance, key[0])
    if (slot === undefined || key[1] !== addressOf(range, slot)) continue
    const isProxied = proxied.some(({ concat }) => concat[1] === key[1])
    rules.set(slot, { ...ruleFrom(slot, key[1], verdict), ...(isProxied ? { isProxied } : {}) })
  }
  return rules
}

/** Returns, for each slot, the number that stands for its organization in Alcove's nft table (`markOf`). */
export const readOrganizations = async (instance: string): Promise<Map<number, number>> => {
  const elements = await elementsOf<[{ concat: [string, string] }, number]>('map', tableOf(instance), 'organizations')
  const known = elements.map(([{ concat: key }, mark]) => [slotOfLink(instance, key[0]), Number(mark)] as const)
  return new Map(known.filter((entry): entry is readonly [number, number] => entry[0] !== undefined))
}

/** Reads the addresses that DNS answers have opened for a slot, each with the seconds for which it stays open. */
export const readOpened = async (instance: string, slot: number): Promise<Map<string, number>> => {
  const elements = await elementsOf<{ elem: { val: string; expires?: number } }>(
    'set',
    tableOf(instance),
    namedOf(slot),
  )
  return new Map(elements.map(({ elem: { val, expires = 0 } }) => [val, expires]))
}
