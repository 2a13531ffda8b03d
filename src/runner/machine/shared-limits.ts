// Limits of the kernel that all sandboxes share, because they count for the user who made the user namespaces, root, for the user
// that each of them is outside where they share one (oci/ids.ts), or for the whole host. With the usual 128 inotify instances one
// sandbox could take them all, from the others and from the host's own services; so it could every open file and every epoll watch,
// and some of them together every process id, every thread and every terminal. What one of those takes up
// counts as the sandbox's memory, and its processes and terminals are counted, so those are the bounds that remain. (Timers and
// message queues: native/launch.c.)
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
  // The host and all its namespaces share a table of neighbours. The links of sandboxes make none (network/make-slots.ts); those of
  // an older runner do, 1024 were the usual most, and then the host finds its own gateway no more.
  '/proc/sys/net/ipv4/neigh/default/gc_thresh1': 16_384,
  '/proc/sys/net/ipv4/neigh/default/gc_thresh2': 32_768,
  '/proc/sys/net/ipv4/neigh/default/gc_thresh3': 65_536,
  // Compiled filters of system calls, each sandbox's own among them; in bytes, as newer kernels have it (oci/seccomp/arguments.ts).
  '/proc/sys/net/core/bpf_jit_limit': 528_482_304,
  '/proc/sys/kernel/pid_max': 4_194_304,
  '/proc/sys/kernel/threads-max': 4_194_304,
  '/proc/sys/kernel/pty/max': 1_048_576,
} as const

const pagesOfMemory = Math.ceil(totalmem() / 4096)

/** 0 means that there is no limit. */
const mayBeWithout = '/proc/sys/fs/pipe-user-pages-soft'

/**
 * Pages in the buffers of sockets: from where on they are made smaller, and beyond which nobody gets any more. In cgroup v2 they
 * are the sandbox's memory as well; in v1 they are not, and this is what saves the memory of the host.
 */
const wantedOfV2 = { '/proc/sys/net/ipv4/tcp_mem': pagesOfMemory, '/proc/sys/net/ipv4/udp_mem': pagesOfMemory } as const

/** What earlier versions set, and what the kernel has by default. Sandboxes have no asynchronous contexts any more. */
const givenBack = { path: '/proc/sys/fs/aio-max-nr', ours: 268_435_456, usual: 65_536 } as const

/** Before it was given back, any process of the host could use gigabytes of the kernel's memory that count as nobody's. */
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

/** Only ever upwards, and left so: other programs may count on it by then. */
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
