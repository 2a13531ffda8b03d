// Images that are built for creates with a definition. An organization has one such image per definition and region. The image
// is kept while sandboxes use it, and otherwise for `keptHours` after the last request for it.
import { createHash } from 'node:crypto'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import { takeFromAllRunners } from '../runners/images.ts'
import type { Sql } from '../storage/database.ts'
import { forgetBuildLog } from './build-logs.ts'
import { insertImage, writeWanted } from './image-store.ts'

/** Prefix of the names of built images. No image of a snapshot has a name with this prefix. */
const prefix = 'build-'
const keptHours = 24
/** Maximum number of builds that are kept for an organization. Builds that sandboxes use are kept in any case. */
const mostKept = 500
/** Maximum number of builds of an organization, including builds that runners have not removed yet. */
const mostBuilds = 1000
/**
 * Maximum size of a built image, in GiB. There is one limit for all sandboxes, because sandboxes of different disk sizes share
 * the image.
 */
const mostGiB = 30

type Build = { organizationId: string; regionId: string; definition: Definition }

/** Returns the name of a build: a hash of everything that determines the image. */
const nameOf = ({ organizationId, regionId, definition: { dockerfile, contexts, snapshots } }: Build): string => {
  const below = snapshots === undefined ? [] : [snapshots]
  const text = JSON.stringify([organizationId, regionId, dockerfile, ...(contexts?.hashes ?? []), ...below])
  return `${prefix}${createHash('sha256').update(text).digest('hex').slice(0, 40)}`
}

/**
 * Stores that the image of a definition is wanted, and returns its name. A failed build may run again.
 * After the transaction, the caller must call `pushImage`, which tells the runners.
 */
export const wantBuild = async (transaction: Transaction, build: Build, now: Date): Promise<string> => {
  const name = nameOf(build)
  const [known] = await transaction<{ wanted: boolean }[]>`select wanted from images where name = ${name} for update`
  // A new build attempt starts with an empty log.
  if (!known?.wanted) await forgetBuildLog(transaction, name)
  if (known) {
    await writeWanted(transaction, name, true, now)
    return name
  }
  const { organizationId, regionId, definition } = build
  await checkCount(transaction, organizationId)
  const maxGiB = await largestOf(transaction, organizationId)
  await insertImage(
    transaction,
    { name, source: definition, regionId, runnerId: null, base: null, maxGiB, builtFor: organizationId },
    now,
  )
  return name
}

/** Returns the maximum size of a built image in GiB. The limits of the organization may lower this size. */
const largestOf = async (transaction: Transaction, organizationId: string): Promise<number> => {
  const [row] = await transaction<{ most: number }[]>`
    select greatest(1, least(${mostGiB}::integer, max_snapshot_size, max_disk_per_sandbox)) as most
    from organizations where id = ${organizationId}`
  return row?.most ?? 1
}

const checkCount = async (transaction: Transaction, organizationId: string): Promise<void> => {
  const [row] = await transaction<[{ count: number }]>`
    select count(*)::integer as count from images where built_for = ${organizationId}`
  if (row.count < mostBuilds) return
  throw new Problem(
    'quota_exceeded',
    `This organization has ${mostBuilds} images built from definitions, which is the maximum. Delete sandboxes that use them.`,
  )
}

/**
 * Marks unused builds as not wanted if they are too old (`keptHours`) or too many (`mostKept`).
 * Returns their names, so that the caller can tell the runners.
 */
export const dropUnusedBuilds = async (sql: Sql, now: Date): Promise<string[]> => {
  const rows = await sql<{ name: string }[]>`
    with ranked as (
      select name, row_number() over (partition by built_for order by updated_at desc) as place
      from images where wanted and built_for is not null
    ), dropped as (
      update images set wanted = false, updated_at = ${now}
      where wanted and starts_with(name, ${prefix})
        and (updated_at < ${new Date(now.getTime() - keptHours * 3_600_000)}
          or name in (select name from ranked where place > ${mostKept}))
        and not exists (
          select from sandboxes where sandboxes.image = images.name and state not in ('destroyed', 'build_failed'))
      returning name
    ), taken as (
      -- Nothing is placed there meanwhile.
      ${takeFromAllRunners(sql, sql`select name from dropped`)}
    )
    select name from dropped`
  return rows.map(({ name }) => name)
}
