import type { Actor } from '#src/control/auth/actor.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { checkKept, checkLimits, getQuota } from '#src/control/quotas/service.ts'
import { checkRoom } from '#src/control/runners/placement.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import type { Size } from '../record/columns.ts'
import { type SandboxRow, sizeOf } from '../record/sandbox.ts'
import type { ResizeSandbox } from '../record/schemas.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox } from './move.ts'
import { waitWhile } from './wait.ts'

const sizeAfter = (sandbox: SandboxRow, { cpu, memory, disk }: ResizeSandbox): Size => ({
  cpu: cpu ?? sandbox.cpu,
  memoryGiB: memory ?? sandbox.memory_gib,
  diskGiB: disk ?? sandbox.disk_gib,
})

const isSame = (one: Size, other: Size) =>
  one.cpu === other.cpu && one.memoryGiB === other.memoryGiB && one.diskGiB === other.diskGiB

const grows = (now: Size, wanted: Size) =>
  wanted.cpu > now.cpu || wanted.memoryGiB > now.memoryGiB || wanted.diskGiB > now.diskGiB

const checkChange = (now: Size, wanted: Size): void => {
  if (wanted.diskGiB < now.diskGiB) {
    throw new Problem('bad_request', `disk cannot shrink: it is ${now.diskGiB} GiB, not ${wanted.diskGiB} GiB or less`)
  }
  if (isSame(now, wanted)) {
    throw new Problem('bad_request', 'cpu, memory or disk must be given, and differ from what the sandbox has')
  }
}

const say = ({ cpu, memoryGiB, diskGiB }: Size) => `${cpu} CPU, ${memoryGiB} GiB memory, ${diskGiB} GiB disk`

/**
 * Changes the size of a sandbox, running or not. Waits a while for the runner, because only the runner knows how much the sandbox
 * uses at present. If the sandbox uses more than the new size, it keeps the old size, and the caller gets the runner's reason.
 */
export const resizeSandbox = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  body: ResizeSandbox,
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const { database, options } = parts
  const sandbox = await getSandbox(database.sql, actor.organization.id, idOrName)
  const moved = await moveSandbox(parts, sandbox, 'resize', {
    by: { kind: 'user', id: actor.user.id },
    check: async (transaction, found) => {
      const now = sizeOf(found)
      const wanted = sizeAfter(found, body)
      checkChange(now, wanted)
      const quota = await getQuota(transaction, actor.organization, found.region_id, found.sandbox_class)
      checkLimits(wanted, quota)
      if (wanted.diskGiB > now.diskGiB) checkKept(wanted.diskGiB, found.auto_delete_interval, quota)
      if (grows(now, wanted)) {
        await checkRoom(transaction, found.runner_id, found.id, wanted, options.overcommit)
      }
      return { cpu: wanted.cpu, memory_gib: wanted.memoryGiB, disk_gib: wanted.diskGiB, resize_from: now }
    },
    reason: `Asked to change from ${say(sizeOf(sandbox))} to ${say(sizeAfter(sandbox, body))}.`,
  })
  const ended = await waitWhile(parts, moved, 'resizing', options.createWaitSeconds * 1000)
  const isRefused = moved.resize_from !== null && isSame(sizeOf(ended), moved.resize_from)
  if (isRefused && ended.error_reason !== null) throw new Problem('conflict', ended.error_reason)
  return ended
}
