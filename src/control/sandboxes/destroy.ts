import { moveSandbox } from './move.ts'
import type { Actor, SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { type By, getSandbox } from './store.ts'

/** Cancels whatever is under way and asks for the end of a sandbox, from any state. Its name is free at once. */
export const destroy = (parts: SandboxParts, sandbox: SandboxRow, by: By, reason?: string): Promise<SandboxRow> =>
  moveSandbox(parts, sandbox, 'delete', {
    by,
    ...(reason === undefined ? {} : { reason }),
    set: ({ name }) => ({
      name: name.startsWith(destroyedPrefix) ? name : `${destroyedPrefix}${name}_${parts.clock.now().getTime()}`,
      stop_signal: 'SIGKILL',
    }),
  })

export const deleteSandbox = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  return await destroy(parts, sandbox, { kind: 'user', id: actor.user.id })
}

export const destroyedPrefix = 'DESTROYED_'
