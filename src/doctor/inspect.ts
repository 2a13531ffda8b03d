// Finds out what this host supports by trying each feature once. The probes leave no files and no processes behind.
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { crun } from './crun.ts'
import { type Finding, type Probe, type ProbeContext, reasonOf } from './finding.ts'
import { isolationProbes } from './isolation.ts'
import { machineProbes } from './machine.ts'
import { type Mirrors, packageMirrors, registryMirrors } from './mirrors.ts'
import { networkProbes } from './network.ts'
import { storageProbes } from './storage.ts'

const probes: readonly Probe[] = [...machineProbes, ...isolationProbes, ...storageProbes, ...networkProbes, crun]

const defaultDataDir = '/var/lib/alcove'

/** Returns one finding per probe. A feature that the host lacks is a finding, not an error. */
export const inspectHost = async ({
  dataDir = defaultDataDir,
  mirrors,
}: {
  dataDir?: string
  mirrors?: Mirrors
} = {}): Promise<Finding[]> => {
  const isRoot = process.getuid?.() === 0
  const all = mirrors === undefined ? probes : [...probes, packageMirrors(mirrors), registryMirrors(mirrors)]
  return Promise.all(
    all.map(async ({ name, run }) => {
      const scratch = await makeScratch(dataDir)
      const context: ProbeContext = { dataDir: resolve(dataDir), scratch, isRoot }
      try {
        return await run(context)
      } catch (error) {
        return { name, status: 'warn', found: `could not be checked: ${reasonOf(error)}`, costs: 'unknown' }
      } finally {
        await rm(scratch, { recursive: true, force: true })
      }
    }),
  )
}

/**
 * Makes a temporary directory in the data directory or, if this is impossible, in its nearest parent directory that is
 * writable.
 */
const makeScratch = async (dataDir: string): Promise<string> => {
  for (let place = resolve(dataDir); ; place = dirname(place)) {
    const isDirectory = await stat(place).then(
      (found) => found.isDirectory(),
      () => false,
    )
    if (isDirectory && place !== '/') {
      const made = await mkdtemp(join(place, '.alcove-doctor-')).catch(() => undefined)
      if (made !== undefined) return made
    }
    if (place === '/') return mkdtemp(join(tmpdir(), 'alcove-doctor-'))
  }
}
