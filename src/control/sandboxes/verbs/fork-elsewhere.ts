// Makes a fork on another host if the parent's host is full. The parent's disk becomes an image without a snapshot, which other
// hosts get through the object store. The child waits for the image on a host with room.
import type { Actor } from '#src/control/auth/actor.ts'
import { insertImage, writeWanted } from '#src/control/images/image-store.ts'
import { baseOf, pushImage } from '#src/control/images/images.ts'
import { checkTotals, type Quota } from '#src/control/quotas/service.ts'
import { hasReadyNeighbour } from '#src/control/runners/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { NewSandbox } from '../record/columns.ts'
import { moveFrom } from '../record/lifecycle.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { insertSandbox } from '../record/store.ts'
import { checkMayWait } from './awaiting-image.ts'
import { moveSandbox } from './move.ts'

/**
 * Returns whether another host can have the fork. False if the parent has volumes: perhaps only the parent's host has the volumes.
 */
export const canForkElsewhere = async ({ database }: RunningParts, parent: SandboxRow): Promise<boolean> =>
  parent.volumes.length === 0 && (await hasReadyNeighbour(database.sql, parent.runner_id, 'with its store'))

type Forking = {
  parent: SandboxRow
  /** Returns the child's row, as for a fork on the parent's own host, and the quota that applies to the child. */
  plan: (transaction: Transaction, parent: SandboxRow) => Promise<{ child: NewSandbox; quota: Quota }>
  /** Called in the transaction that has inserted the child's row, to store more about the child. */
  note: (transaction: Transaction, child: SandboxRow) => Promise<void>
}

/**
 * Requests an image of the parent's disk, and inserts the child. The parent is `snapshotting` while its disk is
 * copied.
 */
export const forkElsewhere = async (
  parts: RunningParts,
  { organization, user, tellIn }: Actor,
  { parent, plan, note }: Forking,
): Promise<SandboxRow> => {
  const { clock, changes } = parts
  const by = { kind: 'user', id: user.id } as const
  let made: SandboxRow | undefined
  await moveSandbox(parts, parent, 'snapshot', {
    by,
    reason: 'A fork is made on another host, because the host of this sandbox is full.',
    check: async (transaction, found) => {
      await tellIn?.(transaction)
      await checkMayWait(transaction, organization.id)
      const { child, quota } = await plan(transaction, found)
      const image = `fork-${child.id}`
      const now = clock.now()
      await insertImage(
        transaction,
        {
          ...{ name: image, source: { kind: 'sandbox', sandboxId: found.id }, regionId: found.region_id },
          ...{ runnerId: found.runner_id, base: await baseOf(transaction, found.image), maxGiB: found.disk_gib },
          builtFor: organization.id,
        },
        now,
      )
      // No snapshot has the image, so the image is stored as not wanted. Control then keeps the image only while the fork needs it.
      await writeWanted(transaction, image, false, now)
      const move = moveFrom('build', null)
      const place = { image, runner_id: null, build: null, state: move.through, desired_state: move.to }
      made = await insertSandbox(transaction, { ...child, ...place }, by)
      await checkTotals(transaction, { from: null, written: made, to: 'started' }, quota.row)
      await note(transaction, made)
      return { snapshot_image: image }
    },
  })
  const row = made!
  changes.announce(null, row)
  await pushImage(parts, row.image)
  return row
}
