// Up to version 0.1, the gate was called `proxy`. After an upgrade, this file renames the gate's log and removes its compiled code.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Renames the gate's log `proxy.log`, and removes the code that Node compiled for `proxy`. No program of this data directory may
 * run meanwhile.
 */
export const takeOverFormerNames = (log: string, cacheDirectory: string): void => {
  for (const end of ['', '.1']) {
    const [former, now] = [join(log, `proxy.log${end}`), join(log, `gate.log${end}`)]
    if (!existsSync(former)) continue
    // After a downgrade and a second upgrade, both logs exist. The newer log is `proxy.log`, so it replaces the other.
    renameSync(former, now)
  }
  rmSync(join(cacheDirectory, 'code', 'proxy'), { recursive: true, force: true })
}
