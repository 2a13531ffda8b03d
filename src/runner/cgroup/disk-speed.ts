// Limits how fast a sandbox may read and write the disk of the pool. The runner first tries whether the host accepts a limit. If
// not, sandboxes run without limit, because a start with a refused limit would fail.
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { mkdir, rmdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { write } from './files.ts'
import type { CgroupLayout } from './layout.ts'

/** The numbers by which the kernel identifies a block device. */
export type Device = { major: number; minor: number }
export type DiskSpeed = Device & { bytesPerSecond: number }

/** Returns the block device of a file system: the whole disk, because the kernel cannot limit a partition. */
const deviceBelow = async (directory: string): Promise<Device> => {
  const source = await runCommand(['findmnt', '--noheadings', '--output', 'SOURCE', '--target', directory])
  // For a btrfs subvolume, findmnt prints the device and the name of the subvolume in brackets.
  const name = basename(realpathSync(source.trim().replace(/\[.*\]$/, '')))
  const place = realpathSync(join('/sys/class/block', name))
  const disk = existsSync(join(place, 'partition')) ? dirname(place) : place
  const [major = Number.NaN, minor = Number.NaN] = readFileSync(join(disk, 'dev'), 'utf8').split(':').map(Number)
  return { major, minor }
}

const tryLimit = async (layout: CgroupLayout, { major, minor }: Device) => {
  const name = `alcove-trial-${process.pid}`
  const roots = layout.version === 2 ? [layout.root] : layout.allRoots
  if (layout.version === 2) await write(join(layout.root, 'cgroup.subtree_control'), '+io')
  const root = roots.find((each) => layout.version === 2 || existsSync(join(each, 'blkio.throttle.write_bps_device')))
  if (root === undefined) throw new Error('The host lacks the cgroup controller blkio.')
  const trial = join(root, name)
  await mkdir(trial)
  try {
    if (layout.version === 2) await write(join(trial, 'io.max'), `${major}:${minor} wbps=1048576`)
    else await write(join(trial, 'blkio.throttle.write_bps_device'), `${major}:${minor} 1048576`)
  } finally {
    await rmdir(trial)
  }
}

type DiskSpeedParts = { layout: CgroupLayout; directory: string; mebibytesPerSecond: number; log: Logger }

/** Finds the pool's device, and tries to set a limit on it. Undefined if no limit is configured, or if the host cannot set one. */
export const findDiskSpeed = async (wanted: DiskSpeedParts): Promise<DiskSpeed | undefined> => {
  const { layout, directory, mebibytesPerSecond, log } = wanted
  if (mebibytesPerSecond === 0) return undefined
  try {
    const device = await deviceBelow(directory)
    await tryLimit(layout, device)
    return { ...device, bytesPerSecond: mebibytesPerSecond * 1024 * 1024 }
  } catch (err) {
    log.warn({ err, directory }, 'no limit of disk input and output here')
    return undefined
  }
}
