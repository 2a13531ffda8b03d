// Ends a sandbox and keeps its disk. Processes get SIGTERM and ten seconds to end, unless the stop is forced.

import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Spec } from '#src/runner/machine/journal.ts'
import { cgroupOf, type Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Running } from '#src/runner/machine/running.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { clearSandbox } from './clear.ts'

const graceMs = 10_000
/** After `graceMs`, the runner waits at most this many milliseconds more for the agent's end. */
const answerMs = 2_000

/** Stops a sandbox. The signal `hurry` fires at a forced stop or a destroy. The processes then get no more time. */
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
  // A paused sandbox is thawed first, because its agent is frozen too and could not receive the request.
  await cgroupOf(machine, sandboxId).thaw()
  const agent = machine.agentAt(socketOf(machine.places, sandboxId))
  // The result does not matter here: the caller then kills all processes that remain.
  await settlesWithin(agent.shutdown(graceMs), graceMs + answerMs, hurry)
}
