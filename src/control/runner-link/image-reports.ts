// Applies the runners' reports about images, also to the snapshots and sandboxes that wait for these images.

import { addToRunner, takeFromRunner } from '#src/control/runners/images.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { endSnapshotting } from '#src/control/sandboxes/upkeep/snapshotting.ts'
import { failWaiting, placeWaiting, showWaiting } from '#src/control/sandboxes/verbs/awaiting-image.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { ImageReport, ImageSource, Progress } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import {
  findImage,
  forgetUnneeded,
  holdImage,
  type Image,
  isImageNeeded,
  isOnRunner,
  pinDigest,
  pinMade,
  writeConfig,
  writeFailedOn,
  writeProgress,
  writeStored,
  writeWanted,
} from '../images/image-store.ts'
import { dropImage, pushImage } from '../images/images.ts'
import type { RunningParts } from '../running.ts'
import { activateSnapshots, failSnapshots, noteProgress, refuseWhatCannotBe } from '../snapshots/of-image.ts'

type Runner = { id: string; regionId: string }

const isRunnerOf = (image: Image, runner: Runner): boolean =>
  image.runnerId === null ? image.regionId === runner.regionId : image.runnerId === runner.id

/**
 * Maximum length of a stored reason, in characters. A longer reason is cut. It can quote an unknown registry, which
 * could send a very long text.
 */
const longestReason = 2000
const reasonOf = ({ errorReason }: ImageReport): string =>
  (errorReason ?? 'Its runner gave no reason.')
    .replaceAll('\0', '')
    .toWellFormed()
    .slice(0, longestReason)
    .toWellFormed()

/** A sandbox after a report has changed its state, with the state before. */
type Settled = { from: SandboxState; row: SandboxRow }

/**
 * Applies a runner's report about an image. If control has not assigned the image to this runner, the report changes
 * nothing.
 */
export const applyImageReport = async (parts: RunningParts, runner: Runner, report: ImageReport): Promise<void> => {
  const { database, clock, changes } = parts
  const now = clock.now()
  let travels = false
  const settled = await database.transaction(async (transaction): Promise<Settled[]> => {
    // Lock the image, so that no sandbox or snapshot starts to wait for it between here and the commit.
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
        if (image.source.kind === 'sandbox') travels = await noteCopy(transaction, image, image.source, report, now)
        if (report.config) await writeConfig(transaction, image.name, report.config)
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
  if (travels) await pushImage(parts, report.image)
  // The runner removed a needed image because its list was outdated. The next list comes only in half a minute, so the
  // image is assigned now.
  if (report.state === 'absent' && (await isImageNeeded(database.sql, report.image)))
    await pushImage(parts, report.image)
}

/**
 * Notes that a disk was copied, or that its copy is in the store. Returns true if that is new: the runner is then asked
 * to put the copy into the store, or all runners of the region are asked to bring it.
 */
const noteCopy = async (
  transaction: Transaction,
  { name, base }: Image,
  { isMade = false }: Extract<ImageSource, { kind: 'sandbox' }>,
  { stored }: ImageReport,
  now: Date,
): Promise<boolean> => {
  if (!isMade) await pinMade(transaction, name)
  if (stored === undefined || base === null) return !isMade
  await writeStored(transaction, name, { kind: 'store', sha256: stored.sha256, base }, now)
  return true
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

/** Activates the snapshots of an image, and refuses those for which the image turns out to be too large. */
const activate = async (transaction: Transaction, image: Image, report: ImageReport, now: Date) => {
  const { config } = report
  const sizeGiB = sizeOf(report)
  const leastGiB = inGiB(report.leastDiskBytes)
  if (await refuseWhatCannotBe(transaction, image.name, { sizeGiB, leastGiB }, now))
    await dropImage(transaction, image.name, now)
  // A snapshot of a sandbox keeps the sandbox's user, which can differ from the user in the image.
  const isCopy = image.source.kind === 'sandbox' || image.source.kind === 'store'
  const user = config === undefined || isCopy ? null : config.user || 'root'
  const entrypoint = config && config.entrypoint.length > 0 ? [...config.entrypoint] : null
  await activateSnapshots(transaction, image.name, { sizeGiB, user, entrypoint }, now)
}

/**
 * Marks the snapshots of an image as failed if no runner has the image and none can still build or pull it. Otherwise
 * only this runner has failed, so it marks nothing and returns false. The built-in image has no row here, because
 * runners make it again when they start.
 */
const fail = async (
  transaction: Transaction,
  image: Image,
  { reason, runnerId }: { reason: string; runnerId: string },
  now: Date,
): Promise<boolean> => {
  if (await isOnRunner(transaction, image.name)) return false
  if (await writeFailedOn(transaction, image.name, runnerId)) return false
  await failSnapshots(transaction, image.name, reason, now)
  // The image is not retried until a caller asks for it again, so that a registry that refuses is not asked forever.
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

/** Stores the progress of an image. Callers see the progress; nothing else depends on it. */
export const keepProgress = async (
  parts: Pick<RunningParts, 'database' | 'clock' | 'changes'>,
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
  await noteProgress(database.sql, image, now)
}
