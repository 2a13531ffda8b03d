// Limits the memory of all sandboxes together, so that some remains for the host and Alcove. At the limit, the kernel frees
// caches of sandboxes and, if that is not enough, kills processes in them.
import { mkdir } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { hasCode, write } from './files.ts'
import type { CgroupLayout } from './layout.ts'

/** Bytes that sandboxes may not use: a tenth of the host's memory, but at most 2 GiB. */
export const reserveBytes = (total = totalmem()): number => Math.min(2 * 1024 ** 3, Math.floor(total / 10))

/**
 * Sets the memory limit of all sandboxes together, on their parent cgroup `path`. If that fails, sandboxes run without this limit.
 */
export const keepReserve = async (layout: CgroupLayout, path: string, log: Logger): Promise<void> => {
  const root = layout.version === 2 ? layout.root : layout.roots.memory
  const file = join(root, path, layout.version === 2 ? 'memory.max' : 'memory.limit_in_bytes')
  try {
    await mkdir(join(root, path), { recursive: true })
    // Enable the memory controller now. The runtime would enable it only when it starts the first sandbox.
    if (layout.version === 2) await write(join(root, 'cgroup.subtree_control'), '+memory')
    await write(file, totalmem() - reserveBytes())
  } catch (error) {
    const isInUse = hasCode(error, 'EBUSY')
    log.warn({ err: error, file, isInUse }, 'sandboxes may take all memory: no part of it could be kept for the host')
  }
}
