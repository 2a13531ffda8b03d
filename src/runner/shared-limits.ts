// Limits of the kernel that all sandboxes share, because they count for the user who made the user namespaces, root, for the user
// that each of them is outside, or for the whole host. With the usual 128 inotify instances one sandbox could take them all, from
// the others and from the host's own services; so it could every open file, every epoll watch and all asynchronous I/O, and some
// of them together every process id, every thread and every terminal. What one of those takes up counts as the sandbox's memory,
// and its processes and terminals are counted, so those are the bounds that remain.
import { readFile, writeFile } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'

const wanted = {
  '/proc/sys/fs/inotify/max_user_instances': 1_048_576,
  '/proc/sys/fs/inotify/max_user_watches': 16_777_216,
  '/proc/sys/fs/file-max': 1_000_000_000,
  '/proc/sys/fs/epoll/max_user_watches': 1_000_000_000,
  '/proc/sys/fs/aio-max-nr': 268_435_456,
  '/proc/sys/fs/pipe-user-pages-soft': 16_777_216,
  '/proc/sys/kernel/pid_max': 4_194_304,
  '/proc/sys/kernel/threads-max': 4_194_304,
  '/proc/sys/kernel/pty/max': 1_048_576,
} as const

/** Zero is none. */
const mayBeWithout = '/proc/sys/fs/pipe-user-pages-soft'

/** Only ever upwards, and left so: other programs may count on it by then. */
export const raiseSharedLimits = async (log: Logger): Promise<void> => {
  for (const [path, value] of Object.entries(wanted)) {
    try {
      const now = Number(await readFile(path, 'utf8'))
      if (now >= value || (now === 0 && path === mayBeWithout)) continue
      await writeFile(path, String(value))
      log.info({ path, value }, 'raised a limit that all sandboxes share')
    } catch (error) {
      log.warn({ err: error, path }, 'could not be raised: one sandbox can take it all')
    }
  }
}
