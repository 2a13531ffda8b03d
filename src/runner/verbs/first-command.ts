// Runs a command in a warm sandbox before the claim, so that the owner's first command is fast. The first command is slow: the
// shell and /etc/passwd are read from the disk, and the agent forks for the first time.

import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Agent, RunningCommand } from '#src/toolbox/agent/agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'

/** Shells, in the order in which the call `process/execute` tries them. */
const shells = ['bash', 'sh'] as const
const withinMs = 2000

const runToEnd = async (command: RunningCommand) => {
  for await (const _ of command);
  await command.exit
}

const runOnce = async (agent: Pick<Agent, 'exec'>, user: string, signal: AbortSignal) => {
  for (const shell of shells) {
    const command = await agent
      .exec({ argv: [shell, '-c', 'true'], env: {}, user, mergeOutput: true })
      .catch(() => undefined)
    if (command === undefined) continue
    signal.addEventListener('abort', () => command.close())
    if (signal.aborted) command.close()
    return await runToEnd(command)
  }
}

export const runFirstCommand = async ({ agentAt, places }: Machine, { sandboxId, user }: Assignment): Promise<void> => {
  const over = new AbortController()
  await settlesWithin(runOnce(agentAt(socketOf(places, sandboxId)), user, over.signal), withinMs)
  over.abort()
}
