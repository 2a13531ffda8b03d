// Makes files that a sandbox sees instead of the kernel's files about the host, such as `/proc/meminfo`. A running sandbox keeps
// the files mounted, so they are overwritten, not replaced by new files.
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { writeCpuList } from '#src/runner/cgroup/cpus.ts'
import { hasCode } from '../cgroup/files.ts'
import { type MemoryUse, noMemoryUse } from '../cgroup/memory-use.ts'
import { renderCpuinfo } from './cpuinfo.ts'
import { renderMeminfo } from './meminfo.ts'

type Shown = { memoryGiB: number; cpus: readonly number[]; hostCpuinfo: string }

/**
 * Name and content of each file that a sandbox sees. oci/config.ts mounts the files over `/proc/meminfo`, `/proc/cpuinfo` and
 * `/sys/…/online`.
 */
const textsOf = ({ memoryGiB, cpus, hostCpuinfo }: Shown, use: MemoryUse) => ({
  meminfo: renderMeminfo(memoryGiB, use),
  cpuinfo: renderCpuinfo(hostCpuinfo, cpus),
  online: `${writeCpuList(cpus)}\n`,
})

// File calls are synchronous here: the files are in memory, so Node's thread pool would take longer.

const makeEmpty = (directory: string) => {
  try {
    mkdirSync(directory, { mode: 0o755 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    removeShownFiles(directory)
    mkdirSync(directory, { mode: 0o755 })
  }
}

/**
 * Makes the files that a sandbox will see as `/proc/meminfo`, `/proc/cpuinfo` and `/sys/…/online`. Called before the sandbox
 * starts.
 */
export const makeShownFiles = (directory: string, shown: Shown): void => {
  makeEmpty(directory)
  for (const [name, text] of Object.entries(textsOf(shown, noMemoryUse)))
    writeFileSync(join(directory, name), text, { mode: 0o444 })
}

/** Overwrites a file, then cuts it to the new length, so that a reader never finds it empty. A missing file is no error. */
const rewrite = (path: string, text: string) => {
  let file: number
  try {
    file = openSync(path, 'r+')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return
    throw error
  }
  try {
    const bytes = Buffer.from(text)
    writeSync(file, bytes, 0, bytes.length, 0)
    ftruncateSync(file, bytes.length)
  } finally {
    closeSync(file)
  }
}

/**
 * Rewrites the files that a running sandbox sees as `/proc/meminfo`, `/proc/cpuinfo` and `/sys/…/online`. Called after a resize.
 */
export const rewriteShownFiles = (directory: string, shown: Shown, use: MemoryUse): void => {
  for (const [name, text] of Object.entries(textsOf(shown, use))) rewrite(join(directory, name), text)
}

export const rewriteMeminfo = (directory: string, memoryGiB: number, use: MemoryUse): void =>
  rewrite(join(directory, 'meminfo'), renderMeminfo(memoryGiB, use))

export const removeShownFiles = (directory: string): void => rmSync(directory, { recursive: true, force: true })
