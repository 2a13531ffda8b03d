// Up to version 0.1, the gate was called `proxy`. After an upgrade from such a version, this file renames the gate's
// log and removes its compiled code.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Renames the log of the gate, which was named `proxy`, and removes the code that Node has compiled for it. May be
 * called again. No program of this data directory may run during the call.
 */
export const takeOverFormerNames = (log: string, cacheDirectory: string): void => {
  for (const end of ['', '.1']) {
    const [former, now] = [join(log, `proxy.log${end}`), join(log, `gate.log${end}`)]
    if (!existsSync(former)) continue
    // After a downgrade and a second upgrade, there is a log under each name. The log of `proxy` is newer, so it
    // replaces the other.
    renameSync(former, now)
  }
  rmSync(join(cacheDirectory, 'code', 'proxy'), { recursive: true, force: true })
}
