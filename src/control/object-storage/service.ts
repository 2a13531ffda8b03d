// Lists the uploaded files from which images are built, for other modules.
import Type from 'typebox'
import { listContextsInUse } from '#src/control/images/image-store.ts'
import { findOwnerOfRegion } from '#src/control/runners/service.ts'
import type { ContextsInUse } from '#src/wire/contexts.ts'
import type { RunningParts } from '../running.ts'

export const ContextsInUseShape = Type.Object({
  organizationId: Type.Optional(Type.String()),
  inUse: Type.Array(Type.Object({ organizationId: Type.String(), hashes: Type.Array(Type.String()) })),
})

/**
 * Lists hashes of uploaded files from which images are built. Runners remove uploaded files that are not listed. For an
 * organization's own region, lists only that organization's files. Runners of that region then remove only files of
 * that organization.
 */
export const listContexts = async (
  { database: { sql } }: Pick<RunningParts, 'database'>,
  regionId: string,
): Promise<ContextsInUse> => {
  const organizationId = await findOwnerOfRegion(sql, regionId)
  const inUse = await listContextsInUse(sql, organizationId)
  return organizationId === undefined ? { inUse } : { organizationId, inUse }
}
