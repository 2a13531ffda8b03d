// The SQL of images: what runners keep for snapshots.

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
  /** Null: every runner of the region brings it. */
  runnerId: string | null
  /** The image below, for one that is only the disk of a sandbox made from that. */
  base: string | null
  maxGiB: number
  /** The organization, where it is built for sandboxes. */
  builtFor?: string
}

export type Image = NewImage & { wanted: boolean; digest: string | null; progress: Progress | null }

const columns = (sql: Sql) => sql`
  images.name, images.source, images.region_id as "regionId", images.runner_id as "runnerId",
  images.base, images.max_gib as "maxGiB", images.wanted, images.digest, images.progress`

/** It is needed by a snapshot, by an image above it, or by a sandbox that would not start again without it. */
const isNeeded = (sql: Sql) => sql`
  (images.wanted or exists (select from images above where above.base = images.name)
    or exists (select from sandboxes where sandboxes.image = images.name
      and state not in ('destroyed', 'build_failed')))`

/** Each runner of a region may have them all, and says the names of those that it has in one message (`runner-link/link.ts`). */
const mostOfRegion = 50_000

const checkRoomFor = async (sql: Sql, regionId: string): Promise<void> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::integer as count from (select from images where region_id = ${regionId} limit ${mostOfRegion}) there`
  if (row.count < mostOfRegion) return
  throw new Problem('unavailable', `The region "${regionId}" has ${mostOfRegion} images, and takes no more now.`)
}

export const insertImage = async (sql: Sql, image: NewImage, now: Date): Promise<void> => {
  const { name, source, regionId, runnerId, base, maxGiB, builtFor = null } = image
  await checkRoomFor(sql, regionId)
  await sql`
    insert into images (name, source, region_id, runner_id, base, max_gib, built_for, created_at, updated_at)
    values (${name}, ${sql.json(source)}, ${regionId}, ${runnerId}, ${base}, ${maxGiB}, ${builtFor}, ${now}, ${now})
    on conflict (name) do nothing`
}

/** Nobody else says what it should be, or is, until the transaction ends. Held before its snapshots are written. */
export const holdImage = async (transaction: Transaction, name: string): Promise<void> => {
  await transaction`select 1 from images where name = ${name} for update`
}

/** False: runners have been told to remove it, or will be. */
export const isImageNeeded = async (sql: Sql, name: string): Promise<boolean> => {
  const [row] = await sql`select 1 from images where name = ${name} and ${isNeeded(sql)}`
  return row !== undefined
}

export const findImage = async (sql: Sql, name: string): Promise<Image | undefined> => {
  const [row] = await sql<Image[]>`select ${columns(sql)} from images where name = ${name}`
  return row
}

/** Null where nobody is left who asked for it, or where it is everybody's. */
const organizationOf = (sql: Sql) => sql`
  coalesce((select organization_id from snapshots where snapshots.image = images.name limit 1), images.built_for)`

type Runner = { id: string; regionId: string }

const isOf = (sql: Sql, { id, regionId }: Runner) => sql`
  (images.runner_id = ${id} or (images.runner_id is null and images.region_id = ${regionId}))`

type Listed = Pick<Image, 'name' | 'maxGiB'> & {
  needed: boolean
  source: ImageSource | null
  organizationId: string | null
}

const asAssignment = ({ name, source, maxGiB, needed, organizationId }: Listed): ImageAssignment => ({
  image: name,
  target: needed ? 'present' : 'absent',
  ...(source === null ? {} : { source }),
  maxGiB,
  ...(organizationId === null ? {} : { organizationId }),
})

/** What one image should be on a runner, with all that it takes; undefined where it does not concern it. */
export const findImageFor = async (sql: Sql, runner: Runner, name: string): Promise<ImageAssignment | undefined> => {
  const [row] = await sql<Listed[]>`
    select name, max_gib as "maxGiB", source, ${isNeeded(sql)} as needed, ${organizationOf(sql)} as "organizationId"
    from images where ${isOf(sql, runner)} and name = ${name}`
  return row && asAssignment(row)
}

/** A runner has said that it has it and what it says of itself, and nobody waits for that. */
const isSettledOn = (sql: Sql, { id }: Runner) => sql`
  (images.name in (select unnest(runners.images) from runners where runners.id = ${id})
    and (images.config is not null or (images.base is not null and images.source @> '{"isMade": true}'))
    and not exists (select from snapshots where snapshots.image = images.name
      and snapshots.state in ${sql(statesInMaking)})
    and not exists (select from sandboxes where sandboxes.image = images.name 
      and sandboxes.state in ${sql(statesAwaitingImage)}))`

/** With what they are made of, which may be 256 KiB each. The others are listed when these are made. */
const mostUnsettled = 100

/** What each image that concerns a runner should be there; those that it has, or is to remove, by their names alone. */
export const listImagesFor = async (sql: Sql, runner: Runner, most = mostUnsettled): Promise<ImageAssignment[]> => {
  // Images to be made go round: the first of each organization, then the second of each.
  const rows = await sql<Listed[]>`
    with concerned as (
      select name, max_gib, created_at, ${isNeeded(sql)} as needed, ${organizationOf(sql)} as organization_id,
        ${isNeeded(sql)} and not ${isSettledOn(sql, runner)} as is_awaited
      from images where ${isOf(sql, runner)}
    ), awaited as (
      select name, row_number() over (partition by organization_id order by created_at, name) as turn
      from concerned where is_awaited order by turn, created_at limit ${most}
    )
    select name, max_gib as "maxGiB", needed, organization_id as "organizationId",
      case when is_awaited then (select source from images where images.name = concerned.name) end as source
    from concerned where not is_awaited or name in (select name from awaited)
    order by created_at, name`
  return rows.map(asAssignment)
}

/** The files that images are made from, of one organization or of all. */
export const listContextsInUse = async (sql: Sql, organizationId?: string): Promise<ContextsInUse['inUse']> =>
  await sql<{ organizationId: string; hashes: string[] }[]>`
    select source #>> '{contexts,organizationId}' as "organizationId",
      array_agg(distinct hash order by hash) as hashes
    from images, jsonb_array_elements_text(source #> '{contexts,hashes}') hash
    where ${isNeeded(sql)} and source -> 'contexts' is not null
      ${organizationId === undefined ? sql`` : sql`and source #>> '{contexts,organizationId}' = ${organizationId}`}
    group by 1 order by 1`

/** Whoever should have an image, or be rid of it. */
export const listRunnersOf = async (sql: Sql, name: string): Promise<{ id: string; regionId: string }[]> =>
  await sql<{ id: string; regionId: string }[]>`
    select runners.id, runners.region_id as "regionId" from runners, images
    where images.name = ${name} and runners.state <> 'decommissioned'
      and (images.runner_id = runners.id or (images.runner_id is null and images.region_id = runners.region_id))`

/** Asked for anew, every runner may try again. */
export const writeWanted = async (sql: Sql, name: string, wanted: boolean, now: Date): Promise<void> => {
  await sql`update images set wanted = ${wanted}, failed_on = '{}', updated_at = ${now} where name = ${name}`
}

/** Answers whether another runner that is ready may still bring it: one whose disk is full fails for nobody else. */
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

/** A name like `python:3.12` is asked for once; whoever brings the image later brings the same. */
export const pinDigest = async (sql: Sql, name: string, digest: string, reference: string, now: Date) => {
  await sql`
    update images set digest = ${digest}, source = source || ${sql.json({ reference })}, progress = null,
      updated_at = ${now}
    where name = ${name}`
}

/** Made again, the same name would be another disk. */
export const pinMade = async (sql: Sql, name: string): Promise<void> => {
  await sql`update images set source = source || '{"isMade": true}' where name = ${name}`
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

/** Nobody needs it, nobody may ask for it again and nobody has it: its row goes too. */
export const forgetUnneeded = async (sql: Sql, name: string): Promise<void> => {
  await sql`
    delete from images where name = ${name} and not ${isNeeded(sql)}
      and not exists (select from snapshots where snapshots.image = images.name)
      and not exists (select from runners where images.name = any(runners.images) and state <> 'decommissioned')`
}

/** All of regions that go; `regionIds` is a question that answers their ids. */
export const deleteImagesIn = async (transaction: Transaction, regionIds: Piece): Promise<void> => {
  await transaction`delete from images where region_id in (${regionIds})`
}
