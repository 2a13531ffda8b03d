import { insertImage } from '#src/control/images/image-store.ts'
import { baseOf } from '#src/control/images/images.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { checkSnapshotName } from './name.ts'
import { checkSnapshotQuota } from './quota.ts'
import { insertSnapshot } from './write.ts'

/** Inserts a snapshot of a sandbox's disk, with the sandbox's size. Its image is made on the sandbox's runner. */
export const writeSnapshotOf = async (
  transaction: Transaction,
  sandbox: SandboxRow,
  givenName: string,
  image: string,
  now: Date,
): Promise<void> => {
  const { organization_id: organizationId, disk_gib: diskGiB } = sandbox
  const name = checkSnapshotName(givenName)
  await insertSnapshot(
    transaction,
    'copy',
    {
      organizationId,
      name,
      image,
      imageName: null,
      osUser: sandbox.os_user,
      entrypoint: sandbox.entrypoint,
      cpu: sandbox.cpu,
      memoryGiB: sandbox.memory_gib,
      diskGiB,
      sourceSandboxId: sandbox.id,
    },
    now,
  )
  await checkSnapshotQuota(transaction, organizationId)
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
