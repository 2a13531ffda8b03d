// All sandboxes together leave a part of the machine's memory to the host and to Alcove's own programs, whatever their limits add
// up to. When they want more, the kernel takes back caches of theirs, and then ends processes of theirs.
import { mkdir } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { hasCode, write } from './files.ts'
import type { CgroupLayout } from './layout.ts'

/** A tenth, and never more than 2 GiB. */
export const reserveBytes = (total = totalmem()): number => Math.min(2 * 1024 ** 3, Math.floor(total / 10))

/** `path` is the cgroup above all sandboxes; it is made if it is not there. Without the limit they run all the same. */
export const keepReserve = async (layout: CgroupLayout, path: string, log: Logger): Promise<void> => {
  const root = layout.version === 2 ? layout.root : layout.roots.memory
  const file = join(root, path, layout.version === 2 ? 'memory.max' : 'memory.limit_in_bytes')
  try {
    await mkdir(join(root, path), { recursive: true })
    // Otherwise the runtime does this, when the first sandbox starts.
    if (layout.version === 2) await write(join(root, 'cgroup.subtree_control'), '+memory')
    await write(file, totalmem() - reserveBytes())
  } catch (error) {
    const isInUse = hasCode(error, 'EBUSY')
    log.warn({ err: error, file, isInUse }, 'sandboxes may take all memory: no part of it could be kept for the host')
  }
}
