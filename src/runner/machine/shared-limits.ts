// Raises kernel limits that all sandboxes share. Some limits apply to the whole host, others to each user. For limits of a user,
// the kernel counts all sandboxes as one user: as root, who makes their user namespaces, or as the owner of their common range of
// ids (oci/ids.ts).
//
// With the default of 128 inotify instances, one sandbox could take all instances from other sandboxes and from the host's
// services. It could also take all open files and epoll watches. A few sandboxes together could take all process ids, threads and
// terminals.
//
// Raising these limits is safe. What a sandbox gets by the higher limits counts towards its memory limit. Processes and terminals
// have limits for each sandbox. For timers and message queues see native/launch.c.
import { readFile, writeFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import type { Logger } from '#src/kit/log.ts'
import type { CgroupLayout } from '#src/runner/cgroup/layout.ts'

const wanted = {
  '/proc/sys/fs/inotify/max_user_instances': 1_048_576,
  '/proc/sys/fs/inotify/max_user_watches': 16_777_216,
  '/proc/sys/fs/file-max': 1_000_000_000,
  '/proc/sys/fs/epoll/max_user_watches': 1_000_000_000,
  '/proc/sys/fs/pipe-user-pages-soft': 16_777_216,
  '/proc/sys/net/ipv4/tcp_max_orphans': 16_777_216,
  // The host and all sandboxes share one neighbour (ARP) table. Network interfaces that older versions of the runner made could
  // fill the default of 1024 entries. The host could then not reach its gateway.
  '/proc/sys/net/ipv4/neigh/default/gc_thresh1': 16_384,
  '/proc/sys/net/ipv4/neigh/default/gc_thresh2': 32_768,
  '/proc/sys/net/ipv4/neigh/default/gc_thresh3': 65_536,
  // Maximum bytes of all compiled system call filters together. Each sandbox has such a filter.
  '/proc/sys/net/core/bpf_jit_limit': 528_482_304,
  '/proc/sys/kernel/pid_max': 4_194_304,
  '/proc/sys/kernel/threads-max': 4_194_304,
  '/proc/sys/kernel/pty/max': 1_048_576,
} as const

const pagesOfMemory = Math.ceil(totalmem() / 4096)

/** Path of a kernel setting for which 0 means "no limit". If its value is 0, the runner leaves it unchanged. */
const mayBeWithout = '/proc/sys/fs/pipe-user-pages-soft'

/**
 * Limits, in pages, of all TCP and all UDP socket buffers. With cgroup v2 the buffers count towards the sandbox's memory. With v1
 * the buffers do not count, so the kernel's low default stays.
 */
const wantedOfV2 = { '/proc/sys/net/ipv4/tcp_mem': pagesOfMemory, '/proc/sys/net/ipv4/udp_mem': pagesOfMemory } as const

/**
 * A kernel setting that earlier versions raised to `ours`; `usual` is the kernel's default. The setting limits asynchronous I/O,
 * which sandboxes can no longer use.
 */
const givenBack = { path: '/proc/sys/fs/aio-max-nr', ours: 268_435_456, usual: 65_536 } as const

/**
 * Resets the kernel's limit of asynchronous I/O, which an earlier version of the runner raised. With the raised limit, any process
 * could use gigabytes of uncharged memory.
 */
export const giveBackSharedLimits = async (log: Logger): Promise<void> => {
  const { path, ours, usual } = givenBack
  try {
    if (Number(await readFile(path, 'utf8')) !== ours) return
    await writeFile(path, String(usual))
    log.info({ path, value: usual }, 'set a limit back that an earlier version had raised')
  } catch (error) {
    log.warn({ err: error, path }, 'could not be set back')
  }
}

/** Raises the kernel limits that all sandboxes share. Never lowers a limit, because other programs may rely on its higher value. */
export const raiseSharedLimits = async (log: Logger, { version }: Pick<CgroupLayout, 'version'>): Promise<void> => {
  for (const [path, value] of Object.entries({ ...wanted, ...(version === 2 ? wantedOfV2 : {}) })) {
    try {
      const now = (await readFile(path, 'utf8')).trim().split(/\s+/).map(Number)
      if (now.every((each) => each >= value || (each === 0 && path === mayBeWithout))) continue
      await writeFile(path, now.map((each) => Math.max(each, value)).join(' '))
      log.info({ path, value }, 'raised a limit that all sandboxes share')
    } catch (error) {
      log.warn({ err: error, path }, 'could not be raised: one sandbox can take it all')
    }
  }
}
