// Manages the nft table of one instance, with the rules of each slot. The table outlives the runner. The runner has a copy of the
// rules. This copy shows what a change has to replace, and is loaded if somebody deletes the table.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import { isOpenable } from './closed.ts'
import { isListed } from './dns/domains.ts'
import { readHostNetworks } from './host-networks.ts'
import { addressOf, linkName, tableOf } from './names.ts'
import { OpenedAddresses } from './opened-addresses.ts'
import {
  cidrsOf,
  domainsOf,
  isSame,
  openToAll,
  type Rule,
  readOpened,
  readOrganizations,
  readRules,
  ruleOf,
  verdictText,
} from './rules.ts'
import {
  askText,
  connectionBounds,
  egressText,
  namedRemovalText,
  namedText,
  ofHostText,
  openingText,
  type Ports,
  type Present,
  type RulesetParts,
  removalText,
  rulesetText,
} from './ruleset.ts'

export type Firewall = {
  /** Numbers of the slots that have rules in this instance's nft table. */
  slots: () => number[]
  /** Lets slots reach every address, except the addresses that are closed to all sandboxes. */
  open: (slots: readonly number[]) => Promise<void>
  apply: (slot: number, policy: NetworkPolicy) => Promise<void>
  /**
   * Makes a slot's connections count towards this organization's limit. For a new slot, the nft table has been changed when the
   * promise resolves. For the slot of a claimed warm sandbox, the table is changed a moment later.
   */
  assign: (slot: number, organizationId: string | undefined) => Promise<void>
  forget: (slots: readonly number[]) => Promise<void>
  /**
   * Redirects DNS questions to the ports of Alcove's resolver, for all slots with a list of domains or with all traffic blocked.
   */
  lead: (ports: Ports) => Promise<void>
  /** Redirects connections of slots with secrets to the port of the proxy for secrets. */
  leadToEgress: (port: number) => Promise<void>
  /**
   * Opens addresses to which the allowed name `name` resolves, except those in networks that are closed to sandboxes (closed.ts).
   * Returns the opened addresses.
   */
  openName: (slot: number, name: string, addresses: readonly string[], seconds: number) => Promise<string[]>
  /**
   * Reads again to which networks the host belongs. If these networks have changed, updates the rules that close them to sandboxes.
   */
  followHost: () => Promise<void>
  /** Loads this instance's nft table again if somebody deleted it. */
  restoreIfGone: () => Promise<void>
}

/**
 * How long an address from a DNS answer stays open: the TTL of the answer or `leastSeconds`, whichever is longer, plus
 * `graceSeconds`.
 */
export type OpenTime = { leastSeconds: number; graceSeconds: number }

const assignDelayMs = 50

const openTime: OpenTime = { leastSeconds: 60, graceSeconds: 60 }

type Opening = { slot: number; name: string; addresses: readonly string[]; seconds: number }

export const openFirewall = async (parts: RulesetParts, log: Logger, time = openTime): Promise<Firewall> => {
  const { instance, range } = parts
  const table = tableOf(instance)
  const present: Present = {
    ofHost: await readHostNetworks(),
    connections: connectionBounds(parts.connectionTableSize ?? (await connectionTableSize())),
  }
  await load(rulesetText(parts, present))
  const rules = await readRules(instance, range)
  const organizations = await readOrganizations(instance)
  /**
   * New slots without a sandbox. In the nft table, such a slot belongs to the organization that got a slot last. If this guess is
   * right, `assign` need not change the table.
   */
  const guessed = new Set<number>()
  let likely: number | undefined
  const opened = new Map<number, OpenedAddresses>()

  const keyOf = (slot: number) => `"${linkName(instance, slot)}" . ${addressOf(range, slot)}`

  const lines = (verb: 'add' | 'delete', slot: number, rule: Rule) => {
    const listed = cidrsOf(rule).map((cidr) => `${addressOf(range, slot)} . ${cidr}`)
    return [
      `${verb} element inet ${table} slots { ${keyOf(slot)} : ${verdictText(slot, rule)} }`,
      ...(rule.isProxied ? [`${verb} element inet ${table} proxied { ${keyOf(slot)} }`] : []),
      ...(asksOurs(rule) ? [`${verb} element inet ${table} askers { ${keyOf(slot)} }`] : []),
      ...(listed.length === 0 ? [] : [`${verb} element inet ${table} allowed { ${listed.join(', ')} }`]),
    ]
  }

  const organizationLine = (verb: 'add' | 'delete', slot: number, mark: number | undefined) =>
    mark === undefined ? [] : [`${verb} element inet ${table} organizations { ${keyOf(slot)} : ${mark} }`]

  /**
   * Returns commands that close the slot's opened addresses whose names `domains` does not allow. Addresses that an earlier runner
   * opened are closed too, because their names are unknown.
   */
  const shorten = async (slot: number, domains: readonly string[]): Promise<string[]> => {
    opened.get(slot)?.keepOnly(domains)
    const kept = [...(await readOpened(instance, slot))].filter(([address]) => opened.get(slot)?.knows(address))
    return [
      `flush set inet ${table} named${slot}`,
      ...kept.map(([address, seconds]) => openingText(instance, slot, [address], Math.max(1, seconds))),
    ]
  }

  const changeOf = async (slot: number, now: Rule | undefined, next: Rule | undefined): Promise<string[]> => {
    const before = domainsOf(now)
    const after = domainsOf(next)
    // After a restart of the runner, `before` is undefined, because the kernel stores no domains. Opened addresses then stay open,
    // because the domains may be unchanged.
    const isShorter = now?.verdict === 'named' && after !== undefined && before !== undefined
    return [
      ...(next?.verdict === 'named' ? namedText(instance, slot) : []),
      ...(isShorter && before.join() !== after.join() ? await shorten(slot, after) : []),
      ...(now === undefined ? [] : lines('delete', slot, now)),
      ...(next === undefined ? organizationLine('delete', slot, organizations.get(slot)) : lines('add', slot, next)),
      ...(now?.verdict === 'named' && next?.verdict !== 'named' ? namedRemovalText(instance, slot) : []),
    ]
  }

  const change = async (slots: readonly number[], next: Rule | undefined) => {
    const changed = slots.filter((slot) => (next === undefined ? rules.has(slot) : !isSame(rules.get(slot), next)))
    if (changed.length === 0) return
    const texts = await Promise.all(changed.map((slot) => changeOf(slot, rules.get(slot), next)))
    const isNew = (slot: number) => next !== undefined && !rules.has(slot) && !organizations.has(slot)
    const [mark, marked] = [likely, likely === undefined ? [] : changed.filter(isNew)]
    await load([...texts.flat(), ...marked.flatMap((slot) => organizationLine('add', slot, mark))].join('\n'))
    for (const slot of marked) {
      organizations.set(slot, mark!)
      guessed.add(slot)
    }
    for (const slot of changed) {
      if (next === undefined) {
        rules.delete(slot)
        organizations.delete(slot)
        guessed.delete(slot)
        unassigned.delete(slot)
      } else rules.set(slot, next)
      if (next?.verdict !== 'named') opened.delete(slot)
    }
  }

  const restore = async () => {
    const everything = [...rules].flatMap(([slot, rule]) => [
      ...(rule.verdict === 'named' ? namedText(instance, slot) : []),
      ...lines('add', slot, rule),
      ...organizationLine('add', slot, organizations.get(slot)),
      ...[...(opened.get(slot)?.live(Date.now()) ?? [])].map(([address, leftMs]) =>
        openingText(instance, slot, [address], Math.ceil(leftMs / 1000)),
      ),
    ])
    await load(`${removalText(instance)}\n${rulesetText(parts, present)}${everything.join('\n')}`)
  }

  // For each slot, the organization that is still to be written to the nft table. All these organizations are written in one
  // transaction.
  const unassigned = new Map<number, number | undefined>()
  let assignSoon: NodeJS.Timeout | undefined
  const assignNow = async () => {
    const batch = [...unassigned].filter(([slot, mark]) => rules.has(slot) && organizations.get(slot) !== mark)
    unassigned.clear()
    if (batch.length === 0) return
    const texts = batch.flatMap(([slot, mark]) => [
      ...organizationLine('delete', slot, organizations.get(slot)),
      ...organizationLine('add', slot, mark),
    ])
    await orAnew(() => load(texts.join('\n')))
    for (const [slot, mark] of batch) {
      if (mark === undefined) organizations.delete(slot)
      else organizations.set(slot, mark)
    }
  }

  // Changes of the nft table run one after the other. If a change fails, some other program has probably changed the table. Then
  // the runner's copy is loaded, and the change is retried.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(run: () => Promise<T>): Promise<T> => {
    const turn = last.then(run)
    last = turn.catch(() => {})
    return turn
  }
  const orAnew = async (run: () => Promise<void>) => {
    try {
      await run()
    } catch (error) {
      log.warn({ err: error }, 'the nft table was not as we left it: loading it anew')
      await restore()
      await run()
    }
  }
  const changeInTurn = (slots: readonly number[], next: Rule | undefined) =>
    inTurn(() => orAnew(() => change(slots, next)))

  const isAllowed = (slot: number, name: string) => isListed(domainsOf(rules.get(slot)) ?? [], name)

  const openNow = async (openings: readonly Opening[]) => {
    const allowed = openings.filter(({ slot, name }) => isAllowed(slot, name))
    if (allowed.length === 0) return
    await load(
      allowed.map(({ slot, addresses, seconds }) => openingText(instance, slot, addresses, seconds)).join('\n'),
    )
    for (const { slot, name, addresses, seconds } of allowed) {
      const record = opened.get(slot) ?? new OpenedAddresses()
      opened.set(slot, record)
      record.add(addresses, name, Date.now() + seconds * 1000)
    }
  }

  // While the nft table is being changed, `openSoon` collects the addresses to open. One transaction then opens all these
  // addresses. If it fails, each request gets its own transaction, so that a slot with too many addresses does not affect other
  // slots.
  const waiting: { opening: Opening; opened: PromiseWithResolvers<void> }[] = []
  const openWaiting = async () => {
    const batch = waiting.splice(0)
    try {
      await openNow(batch.map(({ opening }) => opening))
    } catch {
      if (!(await isThere(table))) await restore()
      for (const each of batch) await openNow([each.opening]).catch(each.opened.reject)
    }
    for (const each of batch) each.opened.resolve()
  }
  const openSoon = (opening: Opening): Promise<void> => {
    const promised = Promise.withResolvers<void>()
    waiting.push({ opening, opened: promised })
    if (waiting.length === 1) inTurn(openWaiting).catch(promised.reject)
    return promised.promise
  }

  return {
    slots: () => [...rules.keys()],
    open: (slots) => changeInTurn(slots, openToAll),
    apply: async (slot, policy) => changeInTurn([slot], ruleOf(policy)),
    assign: async (slot, organizationId) => {
      const mark = organizationId === undefined ? undefined : markOf(organizationId)
      const isNew = guessed.delete(slot) || !organizations.has(slot)
      if (isNew) likely = mark ?? likely
      if (organizations.get(slot) === mark) return void unassigned.delete(slot)
      unassigned.set(slot, mark)
      if (isNew) return await inTurn(assignNow)
      if (assignSoon !== undefined) return
      assignSoon = setTimeout(() => {
        assignSoon = undefined
        inTurn(assignNow).catch((error) => log.error({ err: error }, 'slots could not be counted by organization'))
      }, assignDelayMs).unref()
    },
    forget: (slots) => changeInTurn(slots, undefined),
    lead: (to) =>
      inTurn(async () => {
        present.ports = to
        await orAnew(() => load(askText(instance, range, to)))
      }),
    leadToEgress: (port) =>
      inTurn(async () => {
        present.egressPort = port
        await orAnew(() => load(egressText(instance, range, port)))
      }),
    openName: async (slot, name, addresses, seconds) => {
      if (!isAllowed(slot, name)) return []
      const openable = addresses.filter((address) => isOpenable(address, { ...parts, ...present }))
      const now = Date.now()
      if (openable.length === 0 || opened.get(slot)?.has(openable, now + seconds * 1000)) return openable
      if (opened.get(slot)?.hasRoomFor(openable, now) === false) throw new Error('too many addresses are open')
      await openSoon({
        slot,
        name,
        addresses: openable,
        seconds: Math.max(seconds, time.leastSeconds) + time.graceSeconds,
      })
      return isAllowed(slot, name) ? openable : []
    },
    followHost: () =>
      inTurn(async () => {
        const ofHost = await readHostNetworks()
        if (ofHost.join() === present.ofHost.join()) return
        log.info({ before: present.ofHost, after: ofHost }, 'the networks of the host have changed')
        present.ofHost = ofHost
        await orAnew(() => load(ofHostText(instance, ofHost)))
      }),
    restoreIfGone: () =>
      inTurn(async () => {
        if (await isThere(table)) return
        log.error('somebody removed our nft table: loading it anew')
        await restore()
      }),
  }
}

export const removeFirewall = (instance: string) => load(removalText(instance))

/**
 * Whether DNS questions of a slot go to Alcove's resolver. If all traffic is blocked, the resolver refuses these questions at once.
 */
const asksOurs = ({ verdict }: Rule) => verdict === 'named' || verdict === 'drop'

/** Returns the number of an organization in the nft table. This number is never 0, because 0 means no organization. */
const markOf = (organizationId: string) => createHash('sha256').update(organizationId).digest().readUInt32BE(0) || 1

/** Returns the size of the kernel's connection table. The kernel shows this size only while it tracks connections. */
const connectionTableSize = async () =>
  Number(await readFile('/proc/sys/net/netfilter/nf_conntrack_max', 'utf8').catch(() => '262144'))

const load = async (text: string) => {
  await runCommand(['nft', '-f', '-'], { input: `${text}\n` })
}

const isThere = (table: string) =>
  runCommand(['nft', 'list', 'chain', 'inet', table, 'leaving']).then(
    () => true,
    () => false,
  )
