// Brings images to the runners that should have them, and takes what runners say about theirs.
//
// Like sandboxes: rows say what should be, runners read them (`GET /runners/images`) and are told of changes sooner over
// their link; everything may be said twice.

import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { endSnapshotting } from '#src/control/sandboxes/upkeep/snapshotting.ts'
import { failWaiting, placeWaiting, showWaiting } from '#src/control/sandboxes/verbs/awaiting-image.ts'
import { statesInMaking } from '#src/control/snapshots/schemas.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { ImageReport, Progress } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxParts } from '../running.ts'
import {
  addToRunner,
  findImage,
  findImageFor,
  forgetUnneeded,
  holdImage,
  type Image,
  isImageNeeded,
  isOnRunner,
  listImagesFor,
  listRunnersOf,
  pinDigest,
  pinMade,
  takeFromRunner,
  writeConfig,
  writeFailedOn,
  writeProgress,
  writeWanted,
} from './image-store.ts'

type Runner = { id: string; regionId: string }

/** A snapshot made of a sandbox rests on the image of that sandbox, or on what that rests on. */
export const baseOf = async (transaction: Transaction, image: string): Promise<string> =>
  (await findImage(transaction, image))?.base ?? image

export const listForRunner = ({ database }: Pick<SandboxParts, 'database'>, runner: Runner) =>
  listImagesFor(database.sql, runner)

/** Tells the runners that are linked here what this image should be. Those that are not find it in their list. */
export const pushImage = async ({ database, links, log }: SandboxParts, name: string): Promise<void> => {
  try {
    for (const runner of await listRunnersOf(database.sql, name)) {
      if (!links.has(runner.id)) continue
      const assignment = await findImageFor(database.sql, runner, name)
      if (assignment) links.say(runner.id, { type: 'image', assignment })
    }
  } catch (error) {
    log.warn({ err: error, image: name }, 'an image could not be pushed; runners find it in their lists')
  }
}

/** No snapshot needs it any more. Sandboxes made from it keep it for as long as they live. */
export const dropImage = async (transaction: Transaction, name: string, now: Date): Promise<void> => {
  const [other] = await transaction`
    select 1 from snapshots where image = ${name} and state not in ('error', 'build_failed', 'removing') limit 1`
  if (!other) await writeWanted(transaction, name, false, now)
}

/** Those of all snapshots of an organization that is being deleted. Answers their names, for the runners to be told. */
export const dropImagesOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and name in (select image from snapshots where organization_id = ${organizationId})
      and not exists (
        select from snapshots where snapshots.image = images.name and organization_id is distinct from ${organizationId})
    returning name`
  return rows.map(({ name }) => name)
}

/** Those that were built for its sandboxes, and for nobody else. */
export const dropBuildsOf = async (transaction: Transaction, organizationId: string, now: Date): Promise<string[]> => {
  const rows = await transaction<{ name: string }[]>`
    update images set wanted = false, updated_at = ${now}
    where wanted and built_for = ${organizationId} returning name`
  return rows.map(({ name }) => name)
}

const isRunnerOf = (image: Image, runner: Runner): boolean =>
  image.runnerId === null ? image.regionId === runner.regionId : image.runnerId === runner.id

/** What a registry answered may have been anybody's text; what the database keeps of it is bounded. */
const longestReason = 2000
const reasonOf = ({ errorReason }: ImageReport): string =>
  (errorReason ?? 'Its runner gave no reason.')
    .replaceAll('\0', '')
    .toWellFormed()
    .slice(0, longestReason)
    .toWellFormed()

/** A sandbox that is somewhere else with its image, and where it was. */
type Settled = { from: SandboxState; row: SandboxRow }

/** Takes what a runner says of an image; what it says of one that is none of its own changes nothing. */
export const applyImageReport = async (parts: SandboxParts, runner: Runner, report: ImageReport): Promise<void> => {
  const { database, clock, changes } = parts
  const now = clock.now()
  const settled = await database.transaction(async (transaction): Promise<Settled[]> => {
    // Nobody asks for it anew meanwhile, so that whoever waits for it is met by what is written here.
    await holdImage(transaction, report.image)
    const image = await findImage(transaction, report.image)
    if (image === undefined || !isRunnerOf(image, runner)) return []
    switch (report.state) {
      case 'absent':
        await takeFromRunner(transaction, runner.id, image.name)
        await forgetUnneeded(transaction, image.name)
        return await releaseSource(transaction, image, 'Its snapshot was deleted while it was made.', now)
      case 'present':
        await addToRunner(transaction, runner.id, image.name)
        await keepDigest(transaction, image, report, now)
        if (image.source.kind === 'sandbox' && !image.source.isMade) await pinMade(transaction, image.name)
        if (report.config) await writeConfig(transaction, image.name, report.config)
        await refuseWhatCannotBe(transaction, image, report, now)
        await activate(transaction, image, report, now)
        return await releaseSource(transaction, image, 'Its snapshot is made.', now)
      case 'error': {
        await takeFromRunner(transaction, runner.id, image.name)
        await writeProgress(transaction, image.name, null, now)
        const reason = reasonOf(report)
        const isFinal = await fail(transaction, image, { reason, runnerId: runner.id }, now)
        const failed = isFinal ? await failWaiting(transaction, image.name, reason, runner.id, now) : []
        const released = await releaseSource(transaction, image, `No snapshot was made: ${reason}`, now)
        return [...released, ...failed]
      }
    }
  })
  for (const { from, row } of settled) changes.announce(from, row)
  if (report.state === 'present') await placeWaiting(parts, { image: report.image })
  // Removed by a list of a moment ago; the next one is half a minute away.
  if (report.state === 'absent' && (await isImageNeeded(database.sql, report.image)))
    await pushImage(parts, report.image)
}

const keepDigest = async (transaction: Transaction, image: Image, { digest }: ImageReport, now: Date) => {
  const { source } = image
  if (source.kind !== 'registry' || digest === undefined || !/^sha256:[0-9a-f]{64}$/.test(digest)) {
    await writeProgress(transaction, image.name, null, now)
    return
  }
  const [, bare = source.reference] = /^(.+?)(?::[^/:@]+)?(?:@.+)?$/.exec(source.reference) ?? []
  await pinDigest(transaction, image.name, digest, `${bare}@${digest}`, now)
}

const inGiB = (bytes: number | undefined): number | null => (bytes === undefined ? null : bytes / 2 ** 30)

const sizeOf = ({ sizeBytes }: ImageReport): number | null => {
  const size = inGiB(sizeBytes)
  return size === null ? null : Math.round(size * 1000) / 1000
}

/** What it needs is known only now: room of its organization, and of the disks of its sandboxes, which begin as it is. */
const refuseWhatCannotBe = async (transaction: Transaction, image: Image, report: ImageReport, now: Date) => {
  const sizeGiB = sizeOf(report)
  const leastGiB = inGiB(report.leastDiskBytes)
  const refused = await transaction`
    update snapshots set state = 'error', size = coalesce(${sizeGiB}, size), updated_at = ${now},
      error_reason = case when ${sizeGiB}::float8 > max_snapshot_size
        then 'It has ' || ${sizeGiB}::float8 || ' GiB, more than the ' || max_snapshot_size || ' GiB that a snapshot may have.'
        else 'Its sandboxes need a disk of at least ' || ceil(${leastGiB}::float8 * 1000) / 1000 || ' GiB, and it gives them '
          || disk_gib || ' GiB.' end
    from organizations
    where organizations.id = organization_id and image = ${image.name}
      and (${sizeGiB}::float8 > max_snapshot_size or ${leastGiB}::float8 > disk_gib)
      and state in ${transaction(statesInMaking)}
    returning snapshots.id`
  if (refused.length > 0) await dropImage(transaction, image.name, now)
}

/** Its snapshots may be used from now on. What they say for themselves counts more than what the image says. */
const activate = async (transaction: Transaction, image: Image, report: ImageReport, now: Date) => {
  const { config } = report
  const sizeGiB = sizeOf(report)
  // Who runs in a sandbox may be another than its image says, and so it is for those that are made of it.
  const user = config === undefined || image.source.kind === 'sandbox' ? null : config.user || 'root'
  const entrypoint = config && config.entrypoint.length > 0 ? [...config.entrypoint] : null
  await transaction`
    update snapshots set state = 'active', error_reason = null, size = coalesce(${sizeGiB}, size), updated_at = ${now},
      os_user = coalesce(${user}, os_user), entrypoint = coalesce(entrypoint, ${entrypoint})
    where image = ${image.name} and state in ${transaction(statesInMaking)}`
}

/**
 * What was lost, and cannot be brought again, is as unusable as what never came; who owns it may activate it again. The
 * built-in image, which nobody could, has no row here: its runners make it anew when they start.
 * False: another runner has it, or may yet bring it, so that nothing has failed but one of them.
 */
const fail = async (
  transaction: Transaction,
  image: Image,
  { reason, runnerId }: { reason: string; runnerId: string },
  now: Date,
): Promise<boolean> => {
  if (await isOnRunner(transaction, image.name)) return false
  if (await writeFailedOn(transaction, image.name, runnerId)) return false
  await transaction`
    update snapshots set state = case when state = 'building' then 'build_failed' else 'error' end,
      error_reason = ${reason}, updated_at = ${now}
    where image = ${image.name} and state in ${transaction([...statesInMaking, 'active'])}`
  // Tried again only when somebody asks for it again: a registry that says no is not asked without end.
  await writeWanted(transaction, image.name, false, now)
  return true
}

const releaseSource = async (
  transaction: Transaction,
  { name, source }: Image,
  reason: string,
  now: Date,
): Promise<Settled[]> => {
  if (source.kind !== 'sandbox') return []
  const row = await endSnapshotting(transaction, source.sandboxId, name, reason, now)
  return row ? [{ from: 'snapshotting', row }] : []
}

/** Kept only for whoever looks; nothing waits for it. */
export const keepProgress = async (
  parts: Pick<SandboxParts, 'database' | 'clock' | 'changes'>,
  runner: Runner,
  { image, step, percent }: Progress & { image: string },
): Promise<void> => {
  const { database, clock } = parts
  const known = await findImage(database.sql, image)
  if (known === undefined || !isRunnerOf(known, runner)) return
  const progress = {
    step: step.replaceAll('\0', '').toWellFormed().slice(0, 200).toWellFormed(),
    percent: Math.min(100, Math.max(0, percent)),
  }
  const now = clock.now()
  await writeProgress(database.sql, image, progress, now)
  await showWaiting(parts, { image, runnerId: runner.id }, progress, now)
  // Also shows that it is not stuck.
  await database.sql`
    update snapshots set state = case when state = 'pending' then 'pulling' else state end, updated_at = ${now}
    where image = ${image} and state in ${database.sql(statesInMaking)}`
}
