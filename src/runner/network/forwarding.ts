// Turns on packet forwarding of the host. If forwarding was off before, it is turned off again when Alcove's network is removed.
// Firewall chains of other programs, such as Docker and ufw, may drop forwarded packets by default. No rule in Alcove's own table
// can override such a chain. Rules that accept packets of sandboxes are therefore added to it, with the name of Alcove's table as
// comment.
import { readFile, writeFile } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { linksOf, tableOf } from './names.ts'
import { notesOfOthers, readNotes, writeNotes } from './notes.ts'

const setting = '/proc/sys/net/ipv4/ip_forward'

/** Turns packet forwarding on, and records whether it was off before any Alcove server of this host turned it on. */
export const openForwarding = async (instance: string) => {
  const isOff = (await readFile(setting, 'utf8')).trim() === '0'
  const notes = await readNotes(instance)
  const forwardingWasOff =
    notes.forwardingWasOff ??
    (isOff || (await notesOfOthers(instance)).some((other) => other.forwardingWasOff === true))
  await writeNotes(instance, { ...notes, forwardingWasOff })
  if (isOff) await writeFile(setting, '1')
}

/**
 * Turns packet forwarding off again if an Alcove server has turned forwarding on and no other Alcove server on this host needs it.
 */
export const closeForwarding = async (instance: string) => {
  const { forwardingWasOff } = await readNotes(instance)
  const others = await notesOfOthers(instance)
  if (forwardingWasOff === true && !others.some((other) => other.range !== undefined)) await writeFile(setting, '0')
}

type ForeignChain = { family: string; table: string; name: string }
type Listed = { chain?: ForeignChain & { hook?: string; policy?: string } }
type ListedRule = { rule?: { handle: number; comment?: string } }

const ofJson = async <T>(argv: string[]): Promise<T[]> =>
  (JSON.parse(await runCommand(['nft', '-j', ...argv])) as { nftables: T[] }).nftables

const closedForwardChains = async (): Promise<ForeignChain[]> =>
  (await ofJson<Listed>(['list', 'chains']))
    .map((item) => item.chain)
    .filter((chain) => chain !== undefined && chain.hook === 'forward' && ['ip', 'inet'].includes(chain.family))
    .filter((chain) => chain?.policy === 'drop') as ForeignChain[]

const ourRules = async (instance: string, { family, table, name }: ForeignChain) =>
  (await ofJson<ListedRule>(['-a', 'list', 'chain', family, table, name]))
    .map((item) => item.rule)
    .filter((rule) => rule?.comment === tableOf(instance))
    .map((rule) => rule?.handle as number)

/** Adds rules that accept packets of sandboxes to every forward chain that drops packets by default. */
export const passForeignChains = async (instance: string, log: Logger) => {
  for (const chain of await closedForwardChains()) {
    const { family, table, name } = chain
    if ((await ourRules(instance, chain)).length > 0) continue
    const links = linksOf(instance)
    await runCommand(['nft', '-f', '-'], {
      input:
        `insert rule ${family} ${table} ${name} oifname ${links} ct state established,related accept comment "${tableOf(instance)}"\n` +
        `insert rule ${family} ${table} ${name} iifname ${links} accept comment "${tableOf(instance)}"\n`,
    })
    log.info(
      { chain: `${family} ${table} ${name}` },
      'this chain forwards nothing by itself; sandboxes were let through',
    )
  }
}

export const leaveForeignChains = async (instance: string) => {
  for (const chain of await closedForwardChains()) {
    const { family, table, name } = chain
    for (const handle of await ourRules(instance, chain)) {
      await runCommand(['nft', 'delete', 'rule', family, table, name, 'handle', String(handle)])
    }
  }
}
