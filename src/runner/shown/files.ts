// The files mounted in a sandbox over kernel files that describe the host (`/proc/meminfo` and others). They are in memory,
// belong to root and are read-only inside. They are rewritten in place, because the sandbox keeps them mounted while it runs,
// also across restarts of the runner.
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { writeCpuList } from '#src/runner/cgroup/cpus.ts'
import { hasCode } from '../cgroup/files.ts'
import { type MemoryUse, noMemoryUse } from '../cgroup/memory-use.ts'
import { renderCpuinfo } from './cpuinfo.ts'
import { renderMeminfo } from './meminfo.ts'

type Shown = { memoryGiB: number; cpus: readonly number[]; hostCpuinfo: string }

/** Name and text of each file below the sandbox's directory. oci/config.ts mounts them. */
const textsOf = ({ memoryGiB, cpus, hostCpuinfo }: Shown, use: MemoryUse) => ({
  meminfo: renderMeminfo(memoryGiB, use),
  cpuinfo: renderCpuinfo(hostCpuinfo, cpus),
  online: `${writeCpuList(cpus)}\n`,
})

// Uses synchronous file calls: for files in memory they are faster than calls in Node's thread pool.

const makeEmpty = (directory: string) => {
  try {
    mkdirSync(directory, { mode: 0o755 })
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
    removeShownFiles(directory)
    mkdirSync(directory, { mode: 0o755 })
  }
}

/** Makes the files that a sandbox sees in place of files of the kernel, such as `/proc/meminfo`. Call before it starts. */
export const makeShownFiles = (directory: string, shown: Shown): void => {
  makeEmpty(directory)
  for (const [name, text] of Object.entries(textsOf(shown, noMemoryUse)))
    writeFileSync(join(directory, name), text, { mode: 0o444 })
}

/** Overwrites a file and then truncates it, so that readers never find it empty. A missing file is no error. */
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

/** Rewrites the files of a running sandbox. Call this when its sizes change. */
export const rewriteShownFiles = (directory: string, shown: Shown, use: MemoryUse): void => {
  for (const [name, text] of Object.entries(textsOf(shown, use))) rewrite(join(directory, name), text)
}

export const rewriteMeminfo = (directory: string, memoryGiB: number, use: MemoryUse): void =>
  rewrite(join(directory, 'meminfo'), renderMeminfo(memoryGiB, use))

export const removeShownFiles = (directory: string): void => rmSync(directory, { recursive: true, force: true })
