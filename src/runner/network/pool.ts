// The network namespaces ("slots") of this runner's sandboxes. Some slots are made ahead, so that a start need not wait.
//
// A used slot is deleted and never given to another sandbox. Slots survive the end of the runner, and the next runner finds them.
// No slot reaches the host, another sandbox, link-local or private addresses (see README.md).
import type { Logger } from '#src/kit/log.ts'
import type { NetworkPolicy } from '#src/wire/runner-link.ts'
import type { SecretsOfRunner } from '#src/wire/secrets.ts'
import { Resolver } from './dns/resolver.ts'
import { Egress } from './egress.ts'
import { type Firewall, type OpenTime, openFirewall } from './firewall.ts'
import { openForwarding, passForeignChains } from './forwarding.ts'
import { HostNetworksWatch } from './host-networks.ts'
import { lookForSlots, mtuOfWayOut } from './look.ts'
import { becomeMaker, deleteSlots, makeSlots } from './make-slots.ts'
import {
  addressOf,
  gatewayOf,
  netnsDir,
  netnsName,
  type Range,
  slotLimit,
  slotOfAddress,
  slotOfNetns,
} from './names.ts'
import { claimRange } from './range.ts'
import { resolversForSandboxes } from './resolvers.ts'

export type Slot = { name: string; netnsPath: string; address: string; gateway: string }

export type NetworkPool = {
  /**
   * Returns a new slot. Until `apply` is called, the slot can reach every address, except the addresses that are closed to all
   * sandboxes.
   */
  acquire(): Promise<Slot>
  /** Takes over a slot that an earlier runner made. Undefined if any part of the slot is missing. */
  adopt(name: string): Slot | undefined
  /**
   * Applies a policy to a slot. When the promise resolves, the policy applies, also to open connections. Throws RangeError for an
   * invalid CIDR block or domain. The slot's connections count towards the connection limit of the organization. These connections
   * may use the secrets of the sandbox.
   */
  apply(slot: Slot, policy: NetworkPolicy, organizationId?: string, sandboxId?: string): Promise<void>
  /**
   * Passes secrets from control to the proxy for secrets. `askedAt`: time at which this runner requested all secrets of its
   * sandboxes. Absent if control sent `news` by itself.
   */
  learnSecrets(news: SecretsOfRunner, askedAt?: number): void
  /** Deletes the slot. A second call with the same slot does nothing. */
  release(slot: Slot): Promise<void>
  /**
   * Deletes slots of earlier runners that were not adopted and that `keep` does not name. Returns the names of the deleted
   * slots.
   */
  sweep(keep: ReadonlySet<string>): Promise<string[]>
  /** Deletes unused slots and stops making new ones. Slots in use stay as they are. */
  close(): Promise<void>
}

export type NetworkPoolOptions = {
  instance: string
  log: Logger
  /** Number of unused slots that are kept ready. */
  spare: number
  /**
   * Networks that are closed by default but that the operator opens for all sandboxes, such as the network of a package mirror.
   */
  opened?: readonly string[]
  /** Addresses of DNS resolvers. Default: the host's resolvers. */
  resolvers?: readonly string[]
  /** Number of connections that the kernel's connection table can contain. Default: read from the kernel. */
  connectionTableSize?: number
  /** How long an address from a DNS answer stays open. Default: the answer's TTL plus one minute, and at least two minutes. */
  openTime?: OpenTime
  /** Called if the proxy for secrets could not serve a connection of a sandbox. `sentence` tells the sandbox's owner why. */
  onTrouble?: (sandboxId: string, sentence: string) => void
}

const batchLimit = 16
const watchEveryMs = 10_000
const refillDelayMs = 100

export const openNetworkPool = async (options: NetworkPoolOptions): Promise<NetworkPool> => {
  const { instance, log, opened = [], resolvers = resolversForSandboxes(), connectionTableSize, openTime } = options
  const { onTrouble = () => {} } = options
  const range = await claimRange(instance, log)
  await openForwarding(instance)
  const firewall = await openFirewall({ instance, range, resolvers, opened, connectionTableSize }, log, openTime)
  await passForeignChains(instance, log)

  const maker = await becomeMaker(instance)
  const found = await lookForSlots(instance)
  // Remove the firewall rules of slots that no longer exist. Otherwise these rules would apply to the next slot with the same
  // number.
  await firewall.forget(firewall.slots().filter((n) => !found.any.has(n)))
  const resolver = new Resolver({
    address: gatewayOf(range),
    upstreams: resolvers,
    lead: firewall.lead,
    open: async (sandbox, ...rest) => {
      const slot = slotOfAddress(range, sandbox)
      return slot === undefined ? [] : firewall.openName(slot, ...rest)
    },
    log,
  })
  const egress = new Egress({ address: gatewayOf(range), lead: firewall.leadToEgress, onTrouble, log })
  const mtu = await mtuOfWayOut()
  const pool = new SlotPool(options, {
    range,
    mtu,
    maker,
    firewall,
    resolver,
    egress,
    found: found.any,
    whole: found.whole,
  })
  pool.refill()
  return pool
}

type Parts = {
  range: Range
  mtu: number
  /**
   * This runner's random name, from the function `becomeMaker` (make-slots.ts). Only the runner with the newest name makes slots.
   */
  maker: string
  firewall: Firewall
  resolver: Resolver
  egress: Egress
  found: Set<number>
  whole: Set<number>
}
type Waiter = { resolve: (slot: Slot) => void; reject: (error: unknown) => void }

class SlotPool implements NetworkPool {
  readonly #options: NetworkPoolOptions
  readonly #parts: Parts
  /** Numbers of the slots that earlier runners made and that were not adopted. */
  readonly #found: Set<number>
  readonly #spare: number[] = []
  readonly #used = new Set<number>()
  readonly #leaving = new Map<number, Promise<void>>()
  readonly #waiters: Waiter[] = []
  readonly #watch: NodeJS.Timeout
  readonly #hostWatch: HostNetworksWatch
  #making: Promise<void> | undefined
  #soon: NodeJS.Timeout | undefined
  #beingMade: readonly number[] = []
  #next: number
  #closed = false

  constructor(options: NetworkPoolOptions, parts: Parts) {
    this.#options = options
    this.#parts = parts
    this.#found = new Set(parts.found)
    this.#next = Math.max(0, ...parts.found)
    const { firewall } = parts
    const orSay = (work: Promise<void>) =>
      work.catch((error) => options.log.error({ err: error }, 'the nft table could not be loaded'))
    this.#watch = setInterval(() => void orSay(firewall.restoreIfGone()), watchEveryMs).unref()
    this.#hostWatch = new HostNetworksWatch(() => void orSay(firewall.followHost()), options.log)
    // The host's networks may have changed after they were first read and before `HostNetworksWatch` started, so they are read
    // again.
    void orSay(firewall.followHost())
  }

  async acquire(): Promise<Slot> {
    if (this.#closed) throw new Error('the network pool is closed')
    const ready = this.#spare.shift()
    if (ready !== undefined) {
      this.#used.add(ready)
      this.#refillSoon()
      return this.#slot(ready)
    }
    if (this.#waiters.length >= slotLimit) throw new Error('too many sandboxes wait for a network')
    const promised = Promise.withResolvers<Slot>()
    this.#waiters.push(promised)
    this.refill()
    return promised.promise
  }

  adopt(name: string): Slot | undefined {
    const n = slotOfNetns(this.#options.instance, name)
    if (n === undefined || !this.#found.has(n) || !this.#parts.whole.has(n)) return undefined
    this.#found.delete(n)
    this.#used.add(n)
    return this.#slot(n)
  }

  async apply(slot: Slot, policy: NetworkPolicy, organizationId?: string, sandboxId?: string): Promise<void> {
    const n = this.#numberOf(slot)
    if (!this.#used.has(n)) throw new Error(`${slot.name} is not in use`)
    const { firewall, resolver, egress } = this.#parts
    if (policy.hasSecrets) {
      const sandbox = sandboxId === undefined ? undefined : { sandboxId, owner: organizationId ?? sandboxId }
      egress.know(slot.address, sandbox)
      await egress.serve()
    }
    const domains = policy.blockAll ? [] : (policy.domains ?? null)
    const serving = domains === null ? undefined : resolver.serve()
    // Without Alcove's resolver, a program in the sandbox would wait seconds for each DNS answer. The firewall can block all
    // traffic without the resolver, so `blockAll` does not need the resolver.
    await (policy.blockAll ? serving?.catch(() => {}) : serving)
    await firewall.apply(n, policy)
    await firewall.assign(n, organizationId)
    resolver.allow(slot.address, domains)
    if (!policy.hasSecrets) egress.know(slot.address, undefined)
  }

  learnSecrets(news: SecretsOfRunner, askedAt?: number): void {
    this.#parts.egress.learn(news, askedAt)
  }

  async release(slot: Slot): Promise<void> {
    const n = this.#numberOf(slot)
    if (!this.#used.has(n)) return
    const leaving = this.#leaving.get(n) ?? this.#leave(n)
    this.#leaving.set(n, leaving)
    await leaving.finally(() => this.#leaving.delete(n))
  }

  async sweep(keep: ReadonlySet<string>): Promise<string[]> {
    const { instance } = this.#options
    const { any } = await lookForSlots(instance)
    const ours = new Set([...this.#used, ...this.#spare, ...this.#beingMade])
    const swept = [...any].filter((n) => !ours.has(n) && !keep.has(netnsName(instance, n)))
    for (let from = 0; from < swept.length; from += batchLimit) {
      const batch = swept.slice(from, from + batchLimit)
      await this.#delete(batch)
      for (const n of batch) this.#found.delete(n)
    }
    return swept.map((n) => netnsName(instance, n))
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#watch)
    this.#hostWatch.close()
    clearTimeout(this.#soon)
    await Promise.all([this.#making, this.#parts.resolver.close(), this.#parts.egress.close()])
    for (const waiter of this.#waiters.splice(0)) waiter.reject(new Error('the network pool is closed'))
    await this.#delete(this.#spare.splice(0))
  }

  /** Starts making slots if there are too few unused slots and no slots are being made. */
  refill() {
    if (this.#making !== undefined || this.#closed || this.#wanted() <= 0) return
    this.#making = this.#make().finally(() => {
      this.#making = undefined
      if (this.#waiters.length > 0) this.refill()
    })
  }

  /**
   * Makes slots after a short delay, so that the start that has just taken a slot is not slowed down. Several slots are then made
   * in one batch.
   */
  #refillSoon() {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined
      this.refill()
    }, refillDelayMs).unref()
  }

  async #make(): Promise<void> {
    const { instance, log } = this.#options
    const { range, mtu, maker, firewall } = this.#parts
    let failures = 0
    while (!this.#closed && this.#wanted() > 0) {
      // If callers are waiting, make only as many slots as these callers need. Spare slots are made afterwards.
      const isAwaited = this.#waiters.length > 0
      const count = Math.min(isAwaited ? this.#waiters.length : this.#wanted(), batchLimit)
      try {
        const numbers = this.#freeNumbers(count)
        this.#beingMade = numbers
        await makeSlots({ instance, range, mtu, maker }, numbers, !isAwaited)
        await firewall.open(numbers)
        for (const n of numbers) this.#hand(n)
        failures = 0
      } catch (error) {
        log.error({ err: error }, 'no network for a sandbox could be made')
        // After a failure, retry once with other slot numbers, because something on the host may block the first numbers.
        if (++failures < 2) continue
        for (const waiter of this.#waiters.splice(0)) waiter.reject(error)
        return
      } finally {
        this.#beingMade = []
      }
    }
  }

  #wanted() {
    return this.#waiters.length + this.#options.spare - this.#spare.length
  }

  #hand(n: number) {
    const waiter = this.#waiters.shift()
    if (waiter === undefined) return void this.#spare.push(n)
    this.#used.add(n)
    waiter.resolve(this.#slot(n))
  }

  async #leave(n: number) {
    await this.#delete([n])
    this.#used.delete(n)
  }

  /**
   * Chooses free slot numbers in ascending order, and after the highest number begins again at 1. The number of a deleted slot is
   * reused as late as possible.
   */
  #freeNumbers(count: number): number[] {
    const taken = new Set([...this.#found, ...this.#used, ...this.#spare, ...this.#beingMade])
    const free: number[] = []
    for (let step = 1; step <= slotLimit && free.length < count; step++) {
      const n = ((this.#next + step - 1) % slotLimit) + 1
      if (!taken.has(n)) free.push(n)
    }
    const last = free.at(-1)
    if (last === undefined) throw new Error(`all ${slotLimit} networks of this host are in use`)
    this.#next = last
    return free
  }

  /**
   * Deletes slots: first their network interfaces and namespaces, then their firewall rules. Thus no interface ever exists without
   * rules.
   */
  async #delete(numbers: readonly number[]) {
    const { instance } = this.#options
    await deleteSlots(instance, numbers)
    const left = (await lookForSlots(instance)).any.intersection(new Set(numbers))
    if (left.size > 0) throw new Error(`could not delete ${[...left].map((n) => netnsName(instance, n)).join(', ')}`)
    const { firewall, resolver, egress, range } = this.#parts
    for (const n of numbers) {
      resolver.allow(addressOf(range, n), null)
      egress.know(addressOf(range, n), undefined)
    }
    await firewall.forget(numbers)
  }

  #numberOf(slot: Slot) {
    const n = slotOfNetns(this.#options.instance, slot.name)
    if (n === undefined) throw new Error(`${slot.name} is not a slot of this server`)
    return n
  }

  #slot(n: number): Slot {
    const { instance } = this.#options
    const { range } = this.#parts
    const name = netnsName(instance, n)
    return { name, netnsPath: `${netnsDir}/${name}`, address: addressOf(range, n), gateway: gatewayOf(range) }
  }
}
