// Removes a sandbox with everything it had. From the moment its journal is disowned nothing can bring it back, so being
// killed in the middle leaves rubbish that the next runner sweeps, never half a sandbox.
import { clearSandbox } from './clear.ts'
import type { Machine } from './machine.ts'
import type { Slot } from './network/pool.ts'

export const destroySandbox = async (machine: Machine, sandboxId: string, slot: Slot | undefined) => {
  await clearSandbox(machine, sandboxId, slot)
  await machine.journal.disown(sandboxId)
  await machine.pool.remove(sandboxId)
  await machine.journal.forget(sandboxId)
}
