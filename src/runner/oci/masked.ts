// Paths in /proc and /sys that would show how the host's disks and networks are used, and by whom. These paths are hidden in
// sandboxes. Each hidden path costs a mount per start, so paths that reveal little stay visible: `/proc/cgroups`, which Java reads,
// and `/proc/stat`, `/proc/vmstat` and `/sys/devices/system/node`. The last three have only sums for the whole machine, which
// programs such as `ps` need.
import { readdirSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

const always = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/buddyinfo',
  '/proc/cmdline',
  '/proc/diskstats',
  '/proc/fs',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/partitions',
  '/proc/pressure',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/softirqs',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/zoneinfo',
  '/sys/block',
  '/sys/class/bdi',
  '/sys/class/block',
  '/sys/class/dmi',
  '/sys/class/net',
  '/sys/devices/virtual/bdi',
  '/sys/devices/virtual/block',
  '/sys/devices/virtual/dmi',
  '/sys/devices/virtual/net',
  '/sys/devices/virtual/powercap',
  '/sys/firmware',
  '/sys/fs/btrfs',
  '/sys/fs/ext4',
  '/sys/fs/f2fs',
  '/sys/fs/fuse',
  '/sys/fs/xfs',
]

const entriesOf = (directory: string) => {
  try {
    return readdirSync(directory).map((name) => join(directory, name))
  } catch {
    return []
  }
}

/**
 * Returns the directory of a symbolic link's target. Returns an empty list if the link is gone: network interfaces of sandboxes
 * come and go.
 */
const directoryOf = (link: string) => {
  try {
    return [dirname(realpathSync(link))]
  } catch {
    return []
  }
}

/** Returns the paths that describe the disks and network cards of this host. */
const ofThisMachine = () => ['/sys/block', '/sys/class/net'].flatMap(entriesOf).flatMap(directoryOf)

/** Returns the paths to hide in sandboxes. A device that is added later is hidden only after the runner's next start. */
export const findMaskedPaths = (): readonly string[] => {
  const isBelow = (path: string) => always.some((above) => path === above || path.startsWith(`${above}/`))
  return [...always, ...new Set(ofThisMachine().filter((path) => !isBelow(path)))]
}
