// Reserves addresses for the sandboxes of an instance: a /20 of 10.0.0.0/8 that this host does not use. A blackhole route reserves
// this range, because the kernel refuses a second route to it. The blackhole route also drops packets to addresses that no sandbox
// has.
import type { Logger } from '#src/kit/log.ts'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { type Cidr, overlap, parseCidr } from './cidr.ts'
import { removeHostAddress } from './host-address.ts'
import { gatewayOf, type Range, rangeBits, rangeText } from './names.ts'
import { readNotes, writeNotes } from './notes.ts'
import { resolversForSandboxes } from './resolvers.ts'

const candidates = 2 ** (rangeBits - 8)
const triesLimit = 16

type Route = { dst: string; type?: string }

/**
 * Returns the networks to which the host has a route, and the addresses of the host's resolvers. Networks of at least a /8 are left
 * out, such as that of a default route.
 */
const takenOnHost = async (): Promise<Cidr[]> => {
  const routes = JSON.parse(await runCommand(['ip', '-j', '-4', 'route', 'show', 'table', 'all'])) as Route[]
  return [...routes.map((route) => route.dst), ...resolversForSandboxes()]
    .filter((dst) => dst !== 'default')
    .map(parseCidr)
    .filter((block) => block !== undefined && block.bits > 8) as Cidr[]
}

const candidate = (instance: string, attempt: number): Range => {
  const index = (Number.parseInt(instance, 16) + attempt) % candidates
  return { base: 10 * 2 ** 24 + index * 2 ** (32 - rangeBits) }
}

const firstFree = (instance: string, taken: readonly Cidr[]) => {
  for (let attempt = 0; attempt < candidates; attempt++) {
    const range = candidate(instance, attempt)
    if (!taken.some((block) => overlap(block, { base: range.base, bits: rangeBits }))) return range
  }
  throw new Error('every part of 10.0.0.0/8 is in use on this host: sandboxes have no addresses left')
}

const route = (verb: 'add' | 'replace' | 'del', range: Range) =>
  runCommand(['ip', 'route', verb, 'blackhole', rangeText(range)])

/** Returns the address range that an earlier runner of this instance recorded, or reserves a new one. */
export const claimRange = async (instance: string, log: Logger): Promise<Range> => {
  const notes = await readNotes(instance)
  if (notes.range !== undefined) {
    await route('replace', notes.range)
    return notes.range
  }
  for (let attempt = 1; attempt <= triesLimit; attempt++) {
    const range = firstFree(instance, await takenOnHost())
    try {
      // The range is recorded before its route is added. Otherwise nothing would remove the route if the runner were killed in
      // between.
      await writeNotes(instance, { ...notes, range })
      await route('add', range)
      log.info({ range: rangeText(range) }, 'took a range of addresses for sandboxes')
      return range
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error
      await writeNotes(instance, notes)
      log.info({ range: rangeText(range), err: error }, 'another server took this range first')
    }
  }
  throw new Error('no range of addresses for sandboxes could be taken')
}

export const giveUpRange = async (range: Range) => {
  await removeHostAddress(gatewayOf(range))
  await route('del', range).catch(() => {})
}
