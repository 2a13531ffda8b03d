import { checkRoom } from '#src/control/runners/placement.ts'
import { moveSandbox } from './move.ts'
import type { Actor, SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { newSecret } from './secret.ts'
import { getSandbox } from './store.ts'
import { checkNotSuspended } from './suspension.ts'

/** Asks a stopped sandbox to start and returns at once; its runner does the starting. */
export const startSandbox = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  return await moveSandbox(parts, sandbox, 'start', {
    by: { kind: 'user', id: actor.user.id },
    // Whoever was given the old one saw what ran before.
    set: () => ({ preview_token: newSecret() }),
    // While it was stopped its cpu and memory may have been given to others.
    check: (transaction, { id, runner_id, cpu, memory_gib }) =>
      checkRoom(transaction, runner_id, { exceptSandboxId: id, cpu, memoryGiB: memory_gib }, parts.options.overcommit),
  })
}
