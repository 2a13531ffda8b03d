// Runs the command that a sandbox is made for, as the first thing of its user's in it: once each time it starts. The agent knows
// whether it was, so this may be asked for twice. Whatever becomes of it, the sandbox is as well without.
import { startEntrypoint as startInside } from '#src/toolbox/sessions/entrypoint.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import type { Machine } from './machine.ts'
import { socketOf } from './places.ts'

export const startEntrypoint = async (machine: Machine, assignment: Assignment): Promise<void> => {
  const { pool, images, agentAt, places, log } = machine
  const { sandboxId, entrypoint = [], isWarm = false, image } = assignment
  // Nobody's yet: it runs with the environment of whoever claims it.
  if (entrypoint.length === 0 || isWarm) return
  try {
    const config = images.configOf?.((await pool.baseOf({ sandboxId })) ?? image)
    const env = { ...config?.env, ...assignment.env }
    const agent = agentAt(socketOf(places, sandboxId))
    await startInside({ assignment: { ...assignment, env }, agent }, entrypoint, config?.workdir)
  } catch (err) {
    log.warn({ err, sandboxId }, 'its entrypoint could not be run')
  }
}
