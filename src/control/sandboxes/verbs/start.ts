import type { Actor } from '#src/control/auth/actor.ts'
import { newSecret } from '#src/control/auth/secret.ts'
import { baseOf } from '#src/control/images/images.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { checkRoom, reserveRunner } from '#src/control/runners/placement.ts'
import type { RunningOptions, RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { holdMounts } from '#src/control/volumes/mounting.ts'
import { type SandboxRow, sizeOf } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox } from './move.ts'
import { waitWhile } from './wait.ts'

/** Finds a runner for an archived sandbox. The runner must have the base image below the disk, and the sandbox's volumes. */
export const findRunnerForArchived = async (
  transaction: Transaction,
  sandbox: SandboxRow,
  { overcommit }: Pick<RunningOptions, 'overcommit'>,
): Promise<string> => {
  const { organization_id: organizationId, region_id: regionId, volumes } = sandbox
  const mounts = await holdMounts(transaction, { organizationId, regionId }, volumes)
  const image = await baseOf(transaction, sandbox.image)
  const wanted = { regionId, image, sandboxId: sandbox.id, volumes: mounts?.need, ...sizeOf(sandbox) }
  return await reserveRunner(transaction, wanted, overcommit)
}

/**
 * Checks that the runner has enough free cpu and memory, which a stopped sandbox does not reserve. For an archived
 * sandbox, chooses any runner with room.
 */
export const findRoom =
  ({ options }: RunningParts) =>
  async (transaction: Transaction, sandbox: SandboxRow): Promise<Partial<SandboxRow>> => {
    if (sandbox.archived_at !== null) return { runner_id: await findRunnerForArchived(transaction, sandbox, options) }
    const wanted = { cpu: sandbox.cpu, memoryGiB: sandbox.memory_gib }
    await checkRoom(transaction, sandbox.runner_id, sandbox.id, wanted, options.overcommit)
    return {}
  }

/** Requests that a sandbox is started or resumed. Waits a moment for a resume, but not for a start. */
export const startSandbox = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  await actor.told
  const moved = await moveSandbox(parts, sandbox, 'start', {
    by: { kind: 'user', id: actor.user.id },
    // Old tokens were given for processes of an earlier start. A resume continues these processes, so the token stays.
    set: ({ state }) => (state === 'paused' ? {} : { preview_token: newSecret() }),
    check: findRoom(parts),
    // The resources of a paused sandbox stay reserved on its runner, so a resume needs no check.
    checksWhen: ({ state }) => state !== 'paused',
  })
  return await waitWhile(parts, moved, 'resuming', parts.options.momentMilliseconds)
}
