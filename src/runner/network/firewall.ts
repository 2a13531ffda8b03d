// The nft table of one instance and what it says about each slot. The kernel holds the truth across restarts; the copy here
// is what makes a change one small transaction, and what puts the table back when somebody flushes the host's rules.
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { type Cidr, parseCidr, withoutNested } from './cidr.ts'
import { addressOf, linkName, slotOfLink, tableOf, toDotted } from './names.ts'
import { type RulesetParts, removalText, rulesetText } from './ruleset.ts'

export type Firewall = {
  /** The slots that the table speaks of. */
  slots: () => number[]
  /** Lets the slot reach everything that is not closed to all. */
  open: (slots: readonly number[]) => Promise<void>
  apply: (slot: number, policy: NetworkPolicy) => Promise<void>
  forget: (slots: readonly number[]) => Promise<void>
  /** Loads the table again if it is gone. */
  restoreIfGone: () => Promise<void>
}

/** `cidrs` only with `goto listed`. */
type Rule = { verdict: 'drop' | 'goto open' | 'goto listed'; cidrs: readonly string[] }

const openToAll: Rule = { verdict: 'goto open', cidrs: [] }

export const allowListLimit = 10

const checkAllowList = (allowList: readonly string[]): Cidr[] => {
  if (allowList.length > allowListLimit) throw new RangeError(`an allow list has at most ${allowListLimit} blocks`)
  return allowList.map((text) => {
    const block = parseCidr(text)
    if (block === undefined) throw new RangeError(`not an IPv4 CIDR block: ${text}`)
    return block
  })
}

const ruleOf = ({ blockAll, allowList }: NetworkPolicy): Rule => {
  const blocks = allowList === null ? [] : withoutNested(checkAllowList(allowList))
  if (blockAll) return { verdict: 'drop', cidrs: [] }
  if (allowList === null || blocks.some((block) => block.bits === 0)) return openToAll
  return { verdict: 'goto listed', cidrs: blocks.map(({ base, bits }) => `${toDotted(base)}/${bits}`) }
}

const isSame = (a: Rule | undefined, b: Rule) => a?.verdict === b.verdict && a.cidrs.join() === b.cidrs.join()

export const openFirewall = async (parts: RulesetParts, log: Logger): Promise<Firewall> => {
  const { instance, range } = parts
  const table = tableOf(instance)
  await load(rulesetText(parts))
  const rules = await readRules(instance, range)

  const lines = (verb: 'add' | 'delete', slot: number, { verdict, cidrs }: Rule) => {
    const address = addressOf(range, slot)
    const key = `"${linkName(instance, slot)}" . ${address}`
    const listed = cidrs.map((cidr) => `${address} . ${cidr}`).join(', ')
    const own = `${verb} element inet ${table} slots { ${key} : ${verdict} }`
    return listed === '' ? [own] : [own, `${verb} element inet ${table} allowed { ${listed} }`]
  }

  const change = async (slots: readonly number[], next: Rule | undefined) => {
    const changed = slots.filter((slot) => (next === undefined ? rules.has(slot) : !isSame(rules.get(slot), next)))
    if (changed.length === 0) return
    const text = changed.flatMap((slot) => {
      const now = rules.get(slot)
      return [
        ...(now === undefined ? [] : lines('delete', slot, now)),
        ...(next === undefined ? [] : lines('add', slot, next)),
      ]
    })
    await load(text.join('\n'))
    for (const slot of changed) {
      if (next === undefined) rules.delete(slot)
      else rules.set(slot, next)
    }
  }

  const restore = async () => {
    const everything = [...rules].flatMap(([slot, rule]) => lines('add', slot, rule))
    await load(`${removalText(instance)}\n${rulesetText(parts)}${everything.join('\n')}`)
  }

  // One change at a time. If the table is not as remembered, it is loaded anew as it should be, and the change tried again.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = (run: () => Promise<void>): Promise<void> => {
    const turn = last.then(run)
    last = turn.catch(() => {})
    return turn
  }
  const changeInTurn = (slots: readonly number[], next: Rule | undefined) =>
    inTurn(async () => {
      try {
        await change(slots, next)
      } catch (error) {
        log.warn({ err: error }, 'the nft table was not as we left it: loading it anew')
        await restore()
        await change(slots, next)
      }
    })

  return {
    slots: () => [...rules.keys()],
    open: (slots) => changeInTurn(slots, openToAll),
    apply: async (slot, policy) => changeInTurn([slot], ruleOf(policy)),
    forget: (slots) => changeInTurn(slots, undefined),
    restoreIfGone: () =>
      inTurn(async () => {
        if (await isThere(table)) return
        log.error('somebody removed our nft table: loading it anew')
        await restore()
      }),
  }
}

export const removeFirewall = (instance: string) => load(removalText(instance))

const load = async (text: string) => {
  await runCommand(['nft', '-f', '-'], { input: `${text}\n` })
}

const isThere = (table: string) =>
  runCommand(['nft', 'list', 'chain', 'inet', table, 'leaving']).then(
    () => true,
    () => false,
  )

type Verdict = { drop: null } | { goto: { target: 'open' | 'listed' } }
type Destination = string | { prefix: { addr: string; len: number } }
type Listing<E> = { nftables: ({ map?: { elem?: E[] } } & { set?: { elem?: E[] } })[] }

const elementsOf = async <E>(kind: 'map' | 'set', table: string, name: string): Promise<E[]> => {
  const listing = JSON.parse(await runCommand(['nft', '-j', 'list', kind, 'inet', table, name])) as Listing<E>
  return listing.nftables.flatMap((item) => item[kind]?.elem ?? [])
}

/** What the kernel's table says, from before this process. */
const readRules = async (instance: string, range: RulesetParts['range']): Promise<Map<number, Rule>> => {
  const table = tableOf(instance)
  const slots = await elementsOf<[{ concat: [string, string] }, Verdict]>('map', table, 'slots')
  const allowed = await elementsOf<{ concat: [string, Destination] }>('set', table, 'allowed')

  const cidrsOf = (address: string) =>
    allowed
      .filter(({ concat }) => concat[0] === address)
      .map(({ concat: [, to] }) => (typeof to === 'string' ? `${to}/32` : `${to.prefix.addr}/${to.prefix.len}`))

  const rules = new Map<number, Rule>()
  for (const [{ concat: key }, verdict] of slots) {
    const slot = slotOfLink(instance, key[0])
    if (slot === undefined || key[1] !== addressOf(range, slot)) continue
    if ('goto' in verdict && verdict.goto.target === 'open') rules.set(slot, openToAll)
    else if ('goto' in verdict) rules.set(slot, { verdict: 'goto listed', cidrs: cidrsOf(key[1]) })
    else rules.set(slot, { verdict: 'drop', cidrs: [] })
  }
  return rules
}
