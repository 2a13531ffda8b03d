// The SQL of the table `images`: the images that runners keep for snapshots, and for sandboxes that are built from a
// definition.

import { statesAwaitingImage } from '#src/control/sandboxes/record/lifecycle.ts'
import { statesInMaking } from '#src/control/snapshots/lifecycle.ts'
import type { Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { ContextsInUse } from '#src/wire/contexts.ts'
import type { ImageAssignment, ImageConfig, ImageSource, Progress } from '#src/wire/runner-link.ts'

type NewImage = {
  name: string
  source: ImageSource
  regionId: string
  /** The only runner that keeps the image. Null: every runner of the region pulls or builds it. */
  runnerId: string | null
  /** The base image, if this image is a copy of a sandbox's disk. */
  base: string | null
  maxGiB: number
  /** The organization for whose sandboxes the image is built. Absent if the image is of a snapshot. */
  builtFor?: string
}

/** The source of a base: the store, to which a runner has uploaded the files of the base. */
type BaseSource = { kind: 'base' }

export type Image = Omit<NewImage, 'source'> & {
  source: ImageSource | BaseSource
  wanted: boolean
  digest: string | null
  progress: Progress | null
}

const columns = (sql: Sql) => sql`
  images.name, images.source, images.region_id as "regionId", images.runner_id as "runnerId",
  images.base, images.max_gib as "maxGiB", images.wanted, images.digest, images.progress`

/** SQL condition: the image is a base in the store. A runner fetches it only to restore a disk. */
const isBase = (sql: Sql) => sql`images.source ->> 'kind' = 'base'`

/** SQL condition: a disk in the object store needs this base. The stored disk has only what differs from the base. */
const isBelowCopy = (sql: Sql) => sql`
  (exists (select from images above where above.stored_base = images.name)
    or exists (select from sandboxes where archive_base = images.name and state <> 'destroyed'))`

/**
 * SQL condition: the image is stored as wanted, or something else needs it. This can be an image that has this image as its
 * base, or a sandbox. If the image is a base, it can be a disk in the object store, too.
 */
const isNeeded = (sql: Sql) => sql`
  (images.wanted or exists (select from images above where above.base = images.name)
    or exists (select from sandboxes where sandboxes.image = images.name
      and state not in ('destroyed', 'build_failed'))
    or (${isBase(sql)} and ${isBelowCopy(sql)}))`

/**
 * Maximum number of images of a region. A runner lists the names of its images in one message of limited size
 * (`runner-link/link.ts`).
 */
const mostOfRegion = 50_000

const checkRoomFor = async (sql: Sql, regionId: string): Promise<void> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::integer as count from (select from images where region_id = ${regionId} limit ${mostOfRegion}) there`
  if (row.count < mostOfRegion) return
  throw new Problem(
    'unavailable',
    `The region "${regionId}" has ${mostOfRegion} images, which is the maximum. Try again later.`,
  )
}

export const insertImage = async (sql: Sql, image: NewImage, now: Date): Promise<void> => {
  const { name, source, regionId, runnerId, base, maxGiB, builtFor = null } = image
  await checkRoomFor(sql, regionId)
  await sql`
    insert into images (name, source, region_id, runner_id, base, max_gib, built_for, created_at, updated_at)
    values (${name}, ${sql.json(source)}, ${regionId}, ${runnerId}, ${base}, ${maxGiB}, ${builtFor}, ${now}, ${now})
    on conflict (name) do nothing`
}

/** Locks the image's row until the transaction ends. Take this lock before writing the image's snapshots. */
export const holdImage = async (transaction: Transaction, name: string): Promise<void> => {
  await transaction`select 1 from images where name = ${name} for update`
}

/** Whether the image is needed. Runners are told to remove an image that is not needed. */
export const isImageNeeded = async (sql: Sql, name: string): Promise<boolean> => {
  const [row] = await sql`select 1 from images where name = ${name} and ${isNeeded(sql)}`
  return row !== undefined
}

export const findImage = async (sql: Sql, name: string): Promise<Image | undefined> => {
  const [row] = await sql<Image[]>`select ${columns(sql)} from images where name = ${name}`
  return row
}

/** SQL expression for the organization that asked for the image. Null if its snapshots are deleted or general. */
const organizationOf = (sql: Sql) => sql`
  coalesce((select organization_id from snapshots where snapshots.image = images.name limit 1), images.built_for)`

type Runner = { id: string; regionId: string }

const isOf = (sql: Sql, { id, regionId }: Runner) => sql`
  (images.runner_id = ${id} or (images.runner_id is null and images.region_id = ${regionId}))`

/**
 * SQL condition: this runner should upload the image to the shared store. The image is a copy of a sandbox's disk.
 * Only this runner has it, and another runner of the region shares the store.
 */
const belongsInStore = (sql: Sql, { id }: Runner) => sql`
  (${isNeeded(sql)} and images.runner_id = ${id} and images.source @> '{"kind": "sandbox", "isMade": true}'
    and exists (select from runners where runners.id = ${id} and shares_store)
    and exists (select from runners other where other.region_id = images.region_id and other.id <> ${id}
      and other.shares_store and other.state <> 'decommissioned'))`

/** SQL condition: the object store may contain the image, completely or in part. */
const mayBeStored = (sql: Sql) => sql`images.source ->> 'kind' in ('sandbox', 'store', 'base')`

type AssignedImageRow = Pick<Image, 'name' | 'maxGiB'> & {
  needed: boolean
  toStore: boolean
  isStored: boolean
  source: Image['source'] | null
  organizationId: string | null
}

const asAssignment = ({
  name,
  source,
  maxGiB,
  needed,
  organizationId,
  toStore,
  isStored,
}: AssignedImageRow): ImageAssignment => ({
  image: name,
  target: needed ? 'present' : 'absent',
  ...(source === null || source.kind === 'base' ? {} : { source }),
  maxGiB,
  ...(organizationId === null ? {} : { organizationId }),
  ...(toStore ? { toStore } : {}),
  ...(isStored && !needed ? { isStored } : {}),
})

/**
 * Returns the assignment of one image for a runner, with its source. Undefined if the image is not meant for this
 * runner.
 */
export const findImageFor = async (sql: Sql, runner: Runner, name: string): Promise<ImageAssignment | undefined> => {
  const [row] = await sql<AssignedImageRow[]>`
    select name, max_gib as "maxGiB", source, ${isNeeded(sql)} as needed, ${organizationOf(sql)} as "organizationId",
      ${belongsInStore(sql, runner)} as "toStore", ${mayBeStored(sql)} as "isStored"
    from images where ${isOf(sql, runner)} and name = ${name} and not (${isBase(sql)} and ${isNeeded(sql)})`
  return row && asAssignment(row)
}

/**
 * SQL condition: control need not tell the runner where the image comes from. The runner has the image, control knows its
 * configuration, and no snapshot or sandbox waits for the image. The configuration may be unknown if the image is a copy of a
 * sandbox's disk.
 */
const isSettledOn = (sql: Sql, { id }: Runner) => sql`
  (images.name in (select unnest(runners.images) from runners where runners.id = ${id})
    and (images.config is not null or (images.base is not null
      and (images.source @> '{"isMade": true}' or images.source @> '{"kind": "store"}')))
    and not exists (select from snapshots where snapshots.image = images.name
      and snapshots.state in ${sql(statesInMaking)})
    and not exists (select from sandboxes where sandboxes.image = images.name 
      and sandboxes.state in ${sql(statesAwaitingImage)}))`

/**
 * Maximum number of images with a source in one list for a runner. A source may have 256 KiB, so later lists have the other images.
 */
const mostUnsettled = 100

/**
 * Lists the assignments of images for a runner. Images that the runner has, or must remove, are listed without their
 * source.
 */
export const listImagesFor = async (sql: Sql, runner: Runner, most = mostUnsettled): Promise<ImageAssignment[]> => {
  // Images to pull or build are listed round-robin over the organizations: the first image of each organization, then the
  // second image of each.
  const rows = await sql<AssignedImageRow[]>`
    with concerned as (
      select name, max_gib, created_at, ${isNeeded(sql)} as needed, ${organizationOf(sql)} as organization_id,
        ${isNeeded(sql)} and not ${isSettledOn(sql, runner)} as is_awaited,
        ${belongsInStore(sql, runner)} as to_store, ${mayBeStored(sql)} as is_stored
      from images where ${isOf(sql, runner)}
        and not (${isBase(sql)} and ${isNeeded(sql)})
    ), awaited as (
      select name, row_number() over (partition by organization_id order by created_at, name) as turn
      from concerned where is_awaited order by turn, created_at limit ${most}
    )
    select name, max_gib as "maxGiB", needed, organization_id as "organizationId",
      to_store as "toStore", is_stored as "isStored",
      case when is_awaited then (select source from images where images.name = concerned.name) end as source
    from concerned where not is_awaited or name in (select name from awaited)
    order by created_at, name`
  return rows.map(asAssignment)
}

/**
 * Lists the hashes of uploaded files for the COPY lines of Dockerfiles. Only images in use count. Without `organizationId`, lists
 * the hashes for all organizations.
 */
export const listContextsInUse = async (sql: Sql, organizationId?: string): Promise<ContextsInUse['inUse']> =>
  await sql<{ organizationId: string; hashes: string[] }[]>`
    select source #>> '{contexts,organizationId}' as "organizationId",
      array_agg(distinct hash order by hash) as hashes
    from images, jsonb_array_elements_text(source #> '{contexts,hashes}') hash
    where ${isNeeded(sql)} and source -> 'contexts' is not null
      ${organizationId === undefined ? sql`` : sql`and source #>> '{contexts,organizationId}' = ${organizationId}`}
    group by 1 order by 1`

/** Lists the runners that should have the image or remove it. */
export const listRunnersOf = async (sql: Sql, name: string): Promise<{ id: string; regionId: string }[]> =>
  await sql<{ id: string; regionId: string }[]>`
    select runners.id, runners.region_id as "regionId" from runners, images
    where images.name = ${name} and runners.state <> 'decommissioned'
      and (images.runner_id = runners.id or (images.runner_id is null and images.region_id = runners.region_id))`

/** Stores whether the image is wanted. Forgets which runners failed to make it, so that every runner may try again. */
export const writeWanted = async (sql: Sql, name: string, wanted: boolean, now: Date): Promise<void> => {
  await sql`update images set wanted = ${wanted}, failed_on = '{}', updated_at = ${now} where name = ${name}`
}

/**
 * Stores that a runner failed to make the image. Returns whether another ready runner of the region may still make it.
 * If so, the snapshot does not fail yet: the cause may be only on this runner, for example a full disk.
 */
export const writeFailedOn = async (sql: Sql, name: string, runnerId: string): Promise<boolean> => {
  await sql`
    update images set failed_on = array_append(failed_on, ${runnerId})
    where name = ${name} and not ${runnerId} = any(failed_on)`
  const [other] = await sql`
    select 1 from images join runners on runners.region_id = images.region_id
    where images.name = ${name} and images.runner_id is null and runners.state = 'ready'
      and not runners.id = any(images.failed_on) limit 1`
  return other !== undefined
}

/** Stores the digest that the tag of an image had at the first pull. Later pulls use the digest, even if the tag moves. */
export const pinDigest = async (sql: Sql, name: string, digest: string, reference: string, now: Date) => {
  await sql`
    update images set digest = ${digest}, source = source || ${sql.json({ reference })}, progress = null,
      updated_at = ${now}
    where name = ${name}`
}

/** Marks a copy of a sandbox's disk as made, so that no runner makes it again. A second copy of this name could differ. */
export const pinMade = async (sql: Sql, name: string): Promise<void> => {
  await sql`update images set source = source || '{"isMade": true}' where name = ${name}`
}

/** Records that the copy of a sandbox's disk is in the object store, where every runner of the region can fetch it. */
export const writeStored = async (sql: Sql, name: string, source: ImageSource, now: Date): Promise<void> => {
  await sql`
    update images set source = ${sql.json(source)}, runner_id = null, failed_on = '{}', updated_at = ${now}
    where name = ${name}`
}

/** Records which base an image needs. The image is a copy of a sandbox's disk, and is in the object store. */
export const writeStoredBase = async (sql: Sql, name: string, base: string): Promise<void> => {
  await sql`update images set stored_base = ${base} where name = ${name}`
}

/**
 * Records that a runner has uploaded a base to a shared store. Returns false for a runner with its own store, because that runner
 * uploads no bases.
 */
export const insertBase = async (sql: Sql, name: string, runnerId: string, now: Date): Promise<boolean> => {
  const [runner] = await sql<{ regionId: string }[]>`
    select region_id as "regionId" from runners where id = ${runnerId} and shares_store`
  if (runner === undefined) return false
  const [known] = await sql`select 1 from images where name = ${name}`
  if (known === undefined) await checkRoomFor(sql, runner.regionId)
  await sql`
    insert into images (name, source, region_id, max_gib, wanted, created_at, updated_at)
    values (${name}, '{"kind": "base"}', ${runner.regionId}, 1, true, ${now}, ${now})
    on conflict (name) do update set wanted = true, updated_at = ${now} where ${isBase(sql)}`
  return true
}

/** How often control checks bases. `milliseconds`: minimum time between checks of one base. `sweep`: bases per sweep. */
const basesPer = { milliseconds: 3_600_000, sweep: 100 }

/**
 * Marks bases as not wanted if no runner has them and no disk in the object store needs them. No later disk can need such a base,
 * because a runner uploads only disks whose bases it has.
 */
export const dropUnusedBases = async (sql: Sql, now: Date): Promise<void> => {
  const before = new Date(now.getTime() - basesPer.milliseconds)
  await sql`
    with due as (
      select name from images where ${isBase(sql)} and wanted and updated_at < ${before}
      order by updated_at limit ${basesPer.sweep} for no key update skip locked
    )
    update images set updated_at = ${now}, wanted = ${isBelowCopy(sql)}
      or name in (select image from runners, unnest(runners.images) image
        where runners.state <> 'decommissioned' and starts_with(image, 'base-'))
    where name in (select name from due)`
}

export const writeConfig = async (sql: Sql, name: string, config: ImageConfig): Promise<void> => {
  await sql`update images set config = ${sql.json(config)} where name = ${name}`
}

export const writeProgress = async (sql: Sql, name: string, progress: Progress | null, now: Date): Promise<void> => {
  await sql`
    update images set progress = ${progress && sql.json(progress)}, updated_at = ${now} where name = ${name}`
}

export const isOnRunner = async (sql: Sql, name: string): Promise<boolean> => {
  const [row] = await sql`select 1 from runners where ${name} = any(images) and state <> 'decommissioned' limit 1`
  return row !== undefined
}

/** Deletes the row of the image if nothing needs the image, no snapshot names it and no runner has it. */
export const forgetUnneeded = async (sql: Sql, name: string): Promise<void> => {
  await sql`
    delete from images where name = ${name} and not ${isNeeded(sql)}
      and not exists (select from snapshots where snapshots.image = images.name)
      and not exists (select from runners where images.name = any(runners.images) and state <> 'decommissioned')`
}

/** Deletes the image rows of deleted regions. `regionIds`: a subquery for the ids of the regions. */
export const deleteImagesIn = async (transaction: Transaction, regionIds: Piece): Promise<void> => {
  await transaction`delete from images where region_id in (${regionIds})`
}
