// Why a sandbox ended by itself, as far as the kernel still knows, in a sentence for a person.
import type { Cause } from '#src/wire/runner-link.ts'
import type { Run } from './journal.ts'
import { cgroupOf, type Machine } from './machine.ts'

/** To be asked before the sandbox's cgroup is cleared away. */
export const causeOfEnd = async (machine: Machine, sandboxId: string, run: Run | undefined): Promise<Cause> => {
  if (run !== undefined && run.bootId !== machine.bootId) return { detail: 'The machine was restarted.' }
  const kills = await cgroupOf(machine, sandboxId).outOfMemoryKills()
  if (kills > 0) return { oomKilled: true, detail: 'The sandbox ended after it had run out of memory.' }
  return { detail: 'The first process of the sandbox has ended.' }
}
