// Ends a sandbox and keeps its disk. A stop that is not forced sends SIGTERM and waits ten seconds. Then all remaining processes
// are killed.

import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Spec } from '#src/runner/machine/journal.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Running } from '#src/runner/machine/running.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { clearSandbox } from './clear.ts'

const graceMs = 10_000
/** How long, after the grace period, the runner waits for the agent's answer. */
const answerMs = 2_000

/** Stops a sandbox. `hurry` ends the grace period early, because a forced stop or a destroy was requested meanwhile. */
export const stopSandbox = async (
  machine: Machine,
  assignment: Assignment,
  running: Running,
  hurry: AbortSignal,
): Promise<Spec> => {
  const { sandboxId, signal } = assignment
  if (signal === 'SIGTERM') await askToEnd(machine, sandboxId, hurry)
  await clearSandbox(machine, sandboxId, running.slot)
  const stopped: Spec = { assignment, status: 'stopped' }
  await machine.journal.writeSpec(sandboxId, stopped)
  return stopped
}

const askToEnd = async (machine: Machine, sandboxId: string, hurry: AbortSignal) => {
  // Resume a paused sandbox first, because its frozen agent cannot receive the request to end.
  await cgroupOf(machine, sandboxId).thaw()
  const agent = machine.agentAt(socketOf(machine.places, sandboxId))
  // Whatever the agent answers, the remaining processes are killed afterwards.
  await settlesWithin(agent.shutdown(graceMs), graceMs + answerMs, hurry)
}
