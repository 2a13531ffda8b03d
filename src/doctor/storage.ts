// Whether a sandbox can be given a hard disk limit: a small btrfs file system is made, limited and filled.
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
  const costs = 'one sandbox can fill the host’s disk; snapshots and forks copy'
  if (findCommand('mkfs.btrfs') === undefined) {
    return { name, status: 'warn', found: 'no btrfs-progs', costs, remedy: 'apt-get install btrfs-progs' }
  }
  try {
    await mkdir(join(scratch, 'pool'))
    const argv = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, scratch]
    const said = await runCommand(argv, { timeoutMs: 60_000 })
    if (said === 'limited\nbeside\n')
      return { name, status: 'ok', found: 'btrfs quota stops a full sandbox, and only that' }
    return {
      name,
      status: 'warn',
      found: `btrfs mounts, but its quota does not hold (${said.trim().replaceAll('\n', ', ')})`,
      costs,
    }
  } catch (error) {
    return { name, status: 'warn', found: reasonOf(error), costs, remedy: 'modprobe btrfs loop' }
  }
})

export const storageProbes: readonly Probe[] = [diskLimit]
