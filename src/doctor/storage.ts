// Checks whether the size of a sandbox's disk can be limited: makes a small btrfs file system, limits a subvolume, and writes more
// than the limit.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { asRoot, type Probe, reasonOf } from './finding.ts'
import { findCommand } from './packages.ts'

const script = `
cd "$0"
truncate -s 160M pool.img
mkfs.btrfs -q pool.img >/dev/null
mount -o loop pool.img pool
btrfs quota enable pool
btrfs subvolume create pool/box >/dev/null
btrfs qgroup limit 8M pool/box
if dd if=/dev/zero of=pool/box/big bs=1M count=32 conv=fsync 2>/dev/null; then echo unlimited; else echo limited; fi
touch pool/beside && echo beside
umount pool
`

const diskLimit = asRoot('disk limits', async ({ scratch }) => {
  const name = 'disk limits'
  const costs = 'one sandbox can fill the host’s disk; snapshots and forks copy all files'
  if (findCommand('mkfs.btrfs') === undefined) {
    return { name, status: 'warn', found: 'no btrfs-progs', costs, remedy: 'apt-get install btrfs-progs' }
  }
  try {
    await mkdir(join(scratch, 'pool'))
    const argv = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, scratch]
    const said = await runCommand(argv, { timeoutMs: 60_000 })
    if (said === 'limited\nbeside\n')
      return { name, status: 'ok', found: 'the btrfs quota stops a full sandbox, and no other sandbox' }
    return {
      name,
      status: 'warn',
      found: `btrfs can be mounted, but its quota has no effect (${said.trim().replaceAll('\n', ', ')})`,
      costs,
    }
  } catch (error) {
    return { name, status: 'warn', found: reasonOf(error), costs, remedy: 'modprobe btrfs loop' }
  }
})

// Measures whether a limit of 2 MiB per second slows a disk down. Prints the milliseconds for 4 MiB: first for a write with
// sync, then for a write that the kernel writes back later.
const speedScript = `
cd "$0"
truncate -s 160M speed.img
mkfs.btrfs -q speed.img >/dev/null
mount -o loop speed.img pool
loop=$(losetup --noheadings --output NAME --associated "$0/speed.img")
device=$(cat "/sys/class/block/\${loop#/dev/}/dev")
root=$(awk '/ - cgroup / && $NF ~ /(^|,)blkio(,|$)/ { print $5; exit }' /proc/self/mountinfo)
if [ -n "$root" ]; then
  group=$root/alcove-doctor-$$; mkdir "$group"; trap 'rmdir "$group"' EXIT
  echo "$device 2097152" >"$group/blkio.throttle.write_bps_device"
else
  root=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
  echo +io >"$root/cgroup.subtree_control"
  group=$root/alcove-doctor-$$; mkdir "$group"; trap 'rmdir "$group"' EXIT
  echo "$device wbps=2097152" >"$group/io.max"
fi
took() {
  began=$(date +%s%N)
  sh -c 'echo $$ >"$0/cgroup.procs"; exec dd if=/dev/zero of="$1" bs=1M count=4 $2 2>/dev/null' "$group" "$1" "$2"
  sync --file-system pool
  echo $((($(date +%s%N) - began) / 1000000))
}
took pool/synced conv=fsync
took pool/plain
umount pool
`

const atTheLimitMs = 1200

const diskSpeed = asRoot('disk speed', async ({ scratch }) => {
  const name = 'disk speed'
  const costs = 'one sandbox can keep the disk busy for all others'
  try {
    await mkdir(join(scratch, 'pool'))
    const argv = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', speedScript, scratch]
    const [synced = 0, plain = 0] = (await runCommand(argv, { timeoutMs: 60_000 })).trim().split('\n').map(Number)
    if (synced < atTheLimitMs)
      return { name, status: 'warn', found: 'limits of input and output have no effect', costs }
    if (plain >= atTheLimitMs)
      return { name, status: 'ok', found: 'limits work, also for data that the kernel writes back later' }
    return {
      name,
      status: 'warn',
      found:
        'limits work for direct and synced input and output, but not for data that the kernel writes back later (cgroup v1)',
      costs: 'writes without sync are limited only by the host’s memory',
      remedy: 'boot with only cgroup v2 (systemd.unified_cgroup_hierarchy=1)',
    }
  } catch (error) {
    return { name, status: 'warn', found: `no limit can be set: ${reasonOf(error)}`, costs }
  }
})

export const storageProbes: readonly Probe[] = [diskLimit, diskSpeed]
