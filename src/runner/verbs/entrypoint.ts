// Runs the entrypoint of a sandbox, once per start: the agent ignores repeated requests. A sandbox runs even if its entrypoint
// fails. The caller waits a limited time for the agent's answer.

import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import { startEntrypoint as startInside } from '#src/toolbox/agent/entrypoint.ts'
import type { Assignment } from '#src/wire/runner-link.ts'

const answersWithinMs = 10_000

type Parts = Pick<Machine, 'agentAt' | 'places' | 'log'> & {
  pool: Pick<Machine['pool'], 'baseOf'>
  images: Pick<Machine['images'], 'configOf'>
}

export const startEntrypoint = async (parts: Parts, assignment: Assignment): Promise<void> => {
  const { pool, images, agentAt, places, log } = parts
  const { sandboxId, entrypoint = [], isWarm = false, image } = assignment
  // A warm sandbox has no owner yet. Its entrypoint runs when the sandbox is claimed, with the owner's environment.
  if (entrypoint.length === 0 || isWarm) return
  const start = async () => {
    const config = images.configOf?.((await pool.baseOf({ sandboxId })) ?? image)
    const env = { ...config?.env, ...assignment.env }
    const agent = agentAt(socketOf(places, sandboxId))
    await startInside({ assignment: { ...assignment, env }, agent }, entrypoint, config?.workdir)
  }
  const starting = start().catch((err: unknown) => log.info({ err, sandboxId }, 'its entrypoint could not be run'))
  // Even if the agent has not answered, it has received the request. It starts the entrypoint as soon as it can.
  if (!(await settlesWithin(starting, answersWithinMs)))
    log.info({ sandboxId }, 'its entrypoint does not start in time')
}
