import type { SandboxRow } from '#src/control/sandboxes/sandbox.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { insertImage } from './image-store.ts'
import { baseOf } from './images.ts'
import { checkSnapshotName } from './name.ts'
import { insertSnapshot } from './store.ts'

const checkQuota = async (transaction: Transaction, organizationId: string): Promise<void> => {
  const [row] = await transaction<{ most: number; count: number }[]>`
    select snapshot_quota as most, (select count(*) from snapshots where organization_id = organizations.id) as count
    from organizations where id = ${organizationId}`
  if (row === undefined || row.count < row.most) return
  throw new Problem('forbidden', `This organization has ${row.count} snapshots, of ${row.most} that it may have.`)
}

/** A snapshot of the disk of a sandbox, as large as the sandbox, on the runner where that disk is. */
export const writeSnapshotOf = async (
  transaction: Transaction,
  sandbox: SandboxRow,
  givenName: string,
  image: string,
  now: Date,
): Promise<void> => {
  const { organization_id: organizationId, disk_gib: diskGiB } = sandbox
  const name = checkSnapshotName(givenName)
  await checkQuota(transaction, organizationId)
  await insertSnapshot(
    transaction,
    {
      organizationId,
      name,
      state: 'snapshotting',
      image,
      imageName: null,
      osUser: sandbox.os_user,
      entrypoint: null,
      cpu: sandbox.cpu,
      memoryGiB: sandbox.memory_gib,
      diskGiB,
      sourceSandboxId: sandbox.id,
    },
    now,
  )
  await insertImage(
    transaction,
    {
      name: image,
      source: { kind: 'sandbox', sandboxId: sandbox.id },
      regionId: sandbox.region_id,
      runnerId: sandbox.runner_id,
      base: await baseOf(transaction, sandbox.image),
      maxGiB: diskGiB,
    },
    now,
  )
}
