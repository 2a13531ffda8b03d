// The gate was called `proxy` in versions up to 0.1. This renames its log and removes its compiled code.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Renames the files. Safe to run again. Must be called while no program of this data directory runs. */
export const takeOverFormerNames = (log: string, cacheDirectory: string): void => {
  for (const end of ['', '.1']) {
    const [former, now] = [join(log, `proxy.log${end}`), join(log, `gate.log${end}`)]
    if (!existsSync(former)) continue
    // After a downgrade, a log exists under each of the two names. The log with the former name is newer, so it
    // replaces the other one.
    renameSync(former, now)
  }
  rmSync(join(cacheDirectory, 'code', 'proxy'), { recursive: true, force: true })
}
