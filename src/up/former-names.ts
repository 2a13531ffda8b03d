// Renames the log of the gate and removes its compiled code after an upgrade. Up to version 0.1, the gate was called
// `proxy`.
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
