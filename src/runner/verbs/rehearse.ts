// A sandbox of a warm pool has its first command behind it before anybody asks for one: what a first command waits for (the
// names and pages of the shell, users, the agent's own first fork) is in memory then. Whether it went well changes nothing.

import { settlesWithin } from '#src/kit/settles-within.ts'
import type { Machine } from '#src/runner/machine/machine.ts'
import { socketOf } from '#src/runner/machine/places.ts'
import type { Agent, RunningCommand } from '#src/toolbox/agent/agent.ts'
import type { Assignment } from '#src/wire/runner-link.ts'

/** Shells in the order in which `process/execute` tries them. */
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

export const rehearse = async ({ agentAt, places }: Machine, { sandboxId, user }: Assignment): Promise<void> => {
  const over = new AbortController()
  await settlesWithin(runOnce(agentAt(socketOf(places, sandboxId)), user, over.signal), withinMs)
  over.abort()
}
