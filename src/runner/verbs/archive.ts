// Moves the disk of a stopped sandbox into the archive store. The journal records the archive before the disk is removed: if the
// runner is killed, the next runner removes the disk or makes the archive again.

import { untilAborted } from '#src/kit/until-aborted.ts'
import { ArchiveFailed } from '#src/runner/archive/failed.ts'
import { packDisk } from '#src/runner/archive/pack.ts'
import { removeArchives } from '#src/runner/archive/remove.ts'
import { type Extent, extentOf } from '#src/runner/archive/tar.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import type { BaseIdentity } from '#src/runner/images/base-identity.ts'
import type { Spec } from '#src/runner/machine/journal.ts'
import { type Machine, NotRecoverable } from '#src/runner/machine/machine.ts'
import { roomForStart } from '#src/runner/overlay/pool.ts'
import type { Assignment, Progress } from '#src/wire/runner-link.ts'

export type Transfer = { signal: AbortSignal; onProgress: (progress: Progress) => void }

/** Stores a copy of the disk as an archive. When this resolves, the archive is complete and in the journal. */
export const archiveDisk = async (
  machine: Machine,
  assignment: Assignment,
  { signal, onProgress }: Transfer,
): Promise<Spec> => {
  const { journal, pool, archiveStore: store } = machine
  const { sandboxId, diskGiB, archive: wanted } = assignment
  if (wanted === undefined) throw new NotRecoverable('The assignment does not name the archive.')
  await checkCanReturn(machine, assignment)
  const size = (await pool.sizeOfDisk(sandboxId)) ?? diskGiB * GiB
  const identity = await identityOfBase(machine, assignment, signal)
  const archive = await packDisk({
    store,
    sandboxId,
    archiveId: wanted.id,
    disk: pool.diskOf(sandboxId),
    base: identity,
    onProgress: ({ bytes }) => onProgress({ step: 'archiving', percent: percentOf(bytes, size) }),
    signal,
  })
  signal.throwIfAborted()
  const base = await pool.baseOf({ sandboxId })
  const archived: Spec = { assignment, status: 'archived', archive, ...(base === undefined ? {} : { base }) }
  await journal.writeSpec(sandboxId, archived)
  return archived
}

/** Returns the identity of the base image's files that the disk of a sandbox needs. */
export const identityOfBase = async (
  { pool, images }: Machine,
  { sandboxId, image }: Assignment,
  signal: AbortSignal,
): Promise<BaseIdentity | undefined> => {
  const base = (await pool.baseOf({ sandboxId })) ?? image
  return await untilAborted(images.identityOf?.(base) ?? Promise.resolve(undefined), signal)
}

/** Throws if the sandbox has no disk on this host, or if an archive of the disk could not be restored. */
export const checkCanReturn = async ({ pool }: Machine, { sandboxId, diskGiB }: Assignment): Promise<void> => {
  if (!(await pool.exists(sandboxId))) throw new NotRecoverable('The disk of the sandbox is gone.')
  checkReturns(await extentOf(pool.diskOf(sandboxId)), pool.hardDiskLimit ? diskGiB : undefined)
}

/**
 * Maximum number of directories in an archived disk. With more directories, a restore takes minutes, because tar compares each
 * directory with all earlier ones.
 */
const mostDirectories = 250_000

/**
 * Throws if the restored disk would exceed its limit or have too many directories. Files that share blocks, such as copies by `cp`,
 * no longer share them after a restore.
 */
export const checkReturns = ({ bytesApart, directories }: Extent, diskGiB = Number.POSITIVE_INFINITY): void => {
  if (directories > mostDirectories) {
    const [found, most] = [directories, mostDirectories].map((number) => number.toLocaleString('en'))
    throw new ArchiveFailed(
      'disk',
      `Its disk has ${found} directories; a disk with more than ${most} cannot be archived.`,
    )
  }
  if (bytesApart <= diskGiB * GiB + roomForStart) return
  const needed = `${(Math.ceil((bytesApart / GiB) * 10) / 10).toFixed(1)} GiB`
  const reason = `Some files share their data, as copies made with cp do; without sharing they need ${needed}, more than the disk has.`
  throw new ArchiveFailed('disk', reason)
}

/** Removes an archived sandbox's disk from this host, and its older archives from the store. */
export const finishArchiving = async (machine: Machine, sandboxId: string, keep: string): Promise<void> => {
  await machine.pool.remove(sandboxId)
  await removeOlder(machine, sandboxId, keep)
}

/**
 * Removes a sandbox's older archives, and the chunks that only these archives need. If the store fails, both stay until the next
 * save, archive or delete.
 */
export const removeOlder = async (
  { archiveStore: store, log }: Machine,
  sandboxId: string,
  keep: string,
  signal?: AbortSignal,
): Promise<void> => {
  await removeArchives({ store, sandboxId, keep, ...(signal ? { signal } : {}) }).catch((err: unknown) => {
    if (!signal?.aborted) log.warn({ err, sandboxId }, 'older archives could not be removed')
  })
}

export const percentOf = (done: number, of: number) => Math.min(99, Math.floor((done / Math.max(of, 1)) * 100))
