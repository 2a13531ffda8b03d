// The gate was called `proxy` in versions up to 0.1. Its log goes on under the new name, and its compiled code is removed.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Safe to run again. Called while no program of this data directory runs. */
export const takeOverFormerNames = (log: string, cacheDirectory: string): void => {
  for (const end of ['', '.1']) {
    const [former, now] = [join(log, `proxy.log${end}`), join(log, `gate.log${end}`)]
    if (!existsSync(former)) continue
    // After a return to the former version both are there, and the newer lines stand in the former one's.
    renameSync(former, now)
  }
  rmSync(join(cacheDirectory, 'code', 'proxy'), { recursive: true, force: true })
}
