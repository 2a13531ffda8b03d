// Limits of the kernel that all sandboxes share, because they count for the user who made the user namespaces: root. With
// the usual 128 inotify instances one sandbox could take them all, from the others and from the host's own services. What
// an instance or a watch takes up counts as the sandbox's memory, so its memory limit is the bound that remains.
import { readFile, writeFile } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'

const wanted = {
  '/proc/sys/fs/inotify/max_user_instances': 1_048_576,
  '/proc/sys/fs/inotify/max_user_watches': 16_777_216,
} as const

/** Only ever upwards, and left so: other programs may count on it by then. */
export const raiseSharedLimits = async (log: Logger): Promise<void> => {
  for (const [path, value] of Object.entries(wanted)) {
    try {
      if (Number(await readFile(path, 'utf8')) >= value) continue
      await writeFile(path, String(value))
      log.info({ path, value }, 'raised a limit that all sandboxes share')
    } catch (error) {
      log.warn({ err: error, path }, 'could not be raised: one sandbox can take it all')
    }
  }
}
