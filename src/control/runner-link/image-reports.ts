// Applies the reports of runners about images. Snapshots and sandboxes that wait for an image change their state too.

import { addToRunner, takeFromRunner } from '#src/control/runners/images.ts'
import type { SandboxRow } from '#src/control/sandboxes/record/sandbox.ts'
import { endSnapshotting } from '#src/control/sandboxes/upkeep/snapshotting.ts'
import { failWaiting, placeWaiting, showWaiting } from '#src/control/sandboxes/verbs/awaiting-image.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import type { ImageReport, ImageSource, Progress } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { noteBase } from '../images/bases.ts'
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
  writeStoredBase,
  writeWanted,
} from '../images/image-store.ts'
import { dropImage, pushImage } from '../images/images.ts'
import type { RunningParts } from '../running.ts'
import { activateSnapshots, failSnapshots, noteProgress, refuseWhatCannotBe } from '../snapshots/of-image.ts'

type Runner = { id: string; regionId: string }

const isRunnerOf = (image: Image, runner: Runner): boolean =>
  image.runnerId === null ? image.regionId === runner.regionId : image.runnerId === runner.id

/** Maximum characters of a stored error reason: it may quote a very long text from an unknown registry. */
const longestReason = 2000
const reasonOf = ({ errorReason }: ImageReport): string =>
  (errorReason ?? 'Its runner gave no reason.')
    .replaceAll('\0', '')
    .toWellFormed()
    .slice(0, longestReason)
    .toWellFormed()

/** A sandbox whose state a runner's report has changed. `from`: its state before the report. */
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
    // Locks the image. Until the commit, no other sandbox or snapshot can begin to wait for the image.
    await holdImage(transaction, report.image)
    const image = await findImage(transaction, report.image)
    if (image === undefined || !isRunnerOf(image, runner)) return []
    // Only older versions of control ask a runner to make a base. If the runner reports an error, change nothing, because archives
    // in the store may still need the base.
    if (image.source.kind === 'base' && report.state === 'error') return []
    switch (report.state) {
      case 'absent':
        await takeFromRunner(transaction, runner.id, image.name)
        await forgetUnneeded(transaction, image.name)
        return await releaseSource(transaction, image, 'Its snapshot was deleted while it was made.', now)
      case 'present':
        await addToRunner(transaction, runner.id, image.name)
        await keepDigest(transaction, image, report, now)
        if (image.source.kind === 'sandbox')
          travels = await noteCopy(transaction, runner, image, image.source, report, now)
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
  // The runner lacks a needed image, because its list of needed images was out of date. The runner reads the list only every half
  // minute. So control sends the assignment now.
  if (report.state === 'absent' && (await isImageNeeded(database.sql, report.image)))
    await pushImage(parts, report.image)
}

/**
 * Stores how far a snapshot of a sandbox is: the disk is copied, or the copy is in the object store. Returns true if this step
 * is new; then the caller assigns the next step.
 */
const noteCopy = async (
  transaction: Transaction,
  runner: Runner,
  { name, base }: Image,
  { isMade = false }: Extract<ImageSource, { kind: 'sandbox' }>,
  { stored }: ImageReport,
  now: Date,
): Promise<boolean> => {
  if (!isMade) await pinMade(transaction, name)
  if (stored === undefined || base === null) return !isMade
  if (stored.base !== undefined) {
    await noteBase(transaction, runner.id, stored.base, now)
    await writeStoredBase(transaction, name, stored.base)
  }
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

/**
 * Makes the snapshots of an image active. A snapshot gets the state `error` instead if the image is too large for the snapshot
 * (`refuseWhatCannotBe`).
 */
const activate = async (transaction: Transaction, image: Image, report: ImageReport, now: Date) => {
  const { config } = report
  const sizeGiB = sizeOf(report)
  const leastGiB = inGiB(report.leastDiskBytes)
  if (await refuseWhatCannotBe(transaction, image.name, { sizeGiB, leastGiB }, now))
    await dropImage(transaction, image.name, now)
  // A snapshot that was made of a sandbox keeps the sandbox's user. The image may name another user.
  const isCopy = image.source.kind === 'sandbox' || image.source.kind === 'store'
  const user = config === undefined || isCopy ? null : config.user || 'root'
  const entrypoint = config && config.entrypoint.length > 0 ? [...config.entrypoint] : null
  await activateSnapshots(transaction, image.name, { sizeGiB, user, entrypoint }, now)
}

/**
 * Marks the snapshots of an image as failed. If a runner has the image, or can still pull or build it, marks nothing and
 * returns false. The built-in image never fails: runners make it again when they start.
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
  // Runners pull or build the image again only when a caller asks. Otherwise they would repeat calls that a registry refuses.
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

/** Stores how far the pull or build of an image is. This progress is only shown to callers. */
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
