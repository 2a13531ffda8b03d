// Probes of the machine: kernel, processor, memory, disk, limits and devices.
import { access, constants, open, readFile, statfs } from 'node:fs/promises'
import { arch, freemem, release, totalmem } from 'node:os'
import { freeBytes } from '#src/kit/file-system.ts'
import type { Finding, Probe } from './finding.ts'
import { findCommand, missingCommands, requiredPackages } from './packages.ts'

const GiB = 2 ** 30

const inGiB = (bytes: number) => `${(bytes / GiB).toFixed(1)} GiB`

const kernel: Probe = {
  name: 'kernel',
  run: async () => {
    const found = release()
    const [major = 0, minor = 0] = found.split('.').map((part) => Number.parseInt(part, 10))
    const isAtLeast = (wanted: number) => major > 5 || (major === 5 && minor >= wanted)
    // Two features need a newer kernel: `cgroup.kill` needs Linux 5.14, and overlays over id-mapped mounts need Linux
    // 5.19.
    if (isAtLeast(19)) return { name: 'kernel', status: 'ok', found }
    if (isAtLeast(14))
      return {
        name: 'kernel',
        status: 'warn',
        found,
        costs: 'older than 5.19: all sandboxes have the same user ids on the host',
        remedy: 'a newer kernel',
      }
    return {
      name: 'kernel',
      status: 'warn',
      found,
      costs: 'older than 5.14: ending a sandbox is slower, and this is not tested',
      remedy: 'a newer kernel',
    }
  },
}

const architecture: Probe = {
  name: 'architecture',
  run: async () => {
    const isSupported = arch() === 'x64' || arch() === 'arm64'
    const found = arch()
    if (isSupported) return { name: 'architecture', status: 'ok', found }
    return {
      name: 'architecture',
      status: 'missing',
      found,
      costs: 'no Node.js is published for this architecture',
      remedy: 'x64 or arm64',
    }
  },
}

const root: Probe = {
  name: 'root',
  run: async ({ isRoot }) =>
    isRoot
      ? { name: 'root', status: 'ok', found: 'yes' }
      : {
          name: 'root',
          status: 'missing',
          found: `uid ${process.getuid?.() ?? 'unknown'}`,
          costs: 'no cgroups, mounts and networks for sandboxes',
          remedy: 'start Alcove as root, for example with sudo',
        },
}

const memory: Probe = {
  name: 'memory',
  run: async () => {
    const available = Number(/^MemAvailable:\s+(\d+)/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024
    const found = `${inGiB(available || freemem())} of ${inGiB(totalmem())} available`
    if (available >= 2 * GiB) return { name: 'memory', status: 'ok', found }
    return { name: 'memory', status: 'warn', found, costs: 'room for few sandboxes', remedy: 'at least 2 GiB' }
  },
}

const disk: Probe = {
  name: 'disk space',
  run: async ({ dataDir, scratch }) => {
    const [free, { type }] = [await freeBytes(scratch), await statfs(scratch)]
    const found = `${inGiB(free)} free for ${dataDir} (file system ${fileSystemName(type)})`
    if (free >= 10 * GiB) return { name: 'disk space', status: 'ok', found }
    const isTooLittle = free < 2 * GiB
    return {
      name: 'disk space',
      status: isTooLittle ? 'missing' : 'warn',
      found,
      costs: isTooLittle ? 'not enough for the default image' : 'room for few sandboxes',
      remedy: 'at least 10 GiB, or another place: --data DIR',
    }
  },
}

/** File system magic numbers from linux/magic.h. */
const fileSystems: Record<number, string> = {
  61267: 'ext4',
  1481003842: 'xfs',
  2435016766: 'btrfs',
  16914836: 'tmpfs',
  2035054128: 'overlay',
  26985: 'nfs',
  801189825: 'zfs',
}

const fileSystemName = (type: number) => fileSystems[type] ?? `0x${type.toString(16)}`

const openFiles: Probe = {
  name: 'open files',
  run: async () => {
    const line = /^Max open files\s+(\S+)\s+(\S+)/m.exec(await readFile('/proc/self/limits', 'utf8'))
    const hard = line?.[2] ?? 'unknown'
    const found = `hard limit ${hard}`
    if (hard === 'unlimited' || Number(hard) >= 16_384) return { name: 'open files', status: 'ok', found }
    return {
      name: 'open files',
      status: 'warn',
      found,
      costs: 'few sandboxes at a time, and small limits inside them',
      remedy: 'ulimit -Hn 65536, or LimitNOFILE=65536 in the unit',
    }
  },
}

const isOpenable = async (path: string) => {
  const handle = await open(path, 'r+')
  await handle.close()
}

const device = (name: string, path: string, whenOpen: string, lost: Pick<Finding, 'costs' | 'remedy'>): Probe => ({
  name,
  run: async () => {
    try {
      await access(path, constants.F_OK)
    } catch {
      return { name, status: 'warn', found: `no ${path}`, ...lost }
    }
    try {
      await isOpenable(path)
      return { name, status: 'ok', found: whenOpen }
    } catch (error) {
      return {
        name,
        status: 'warn',
        found: `${path} cannot be opened: ${(error as NodeJS.ErrnoException).code}`,
        ...lost,
      }
    }
  },
})

const kvm = device('KVM', '/dev/kvm', '/dev/kvm opens; that a virtual machine boots is not proven by it', {
  costs: 'no virtual machine class; containers do not need it',
  remedy: 'hardware with virtualization, or nested virtualization in the cloud’s settings',
})

const fuse = device('FUSE', '/dev/fuse', '/dev/fuse opens', {
  costs: 'no FUSE file systems; nothing needs them yet',
  remedy: 'modprobe fuse',
})

const packages: Probe = {
  name: 'system packages',
  run: async () => {
    const missing = missingCommands()
    const found = `${requiredPackages.length - missing.length} of ${requiredPackages.length}`
    if (missing.length === 0) return { name: 'system packages', status: 'ok', found }
    const names = missing.map(({ name }) => name)
    return {
      name: 'system packages',
      status: 'missing',
      found: `${found}; missing: ${missing.map(({ name, why }) => `${name} (${why})`).join(', ')}`,
      costs: 'sandboxes cannot be made',
      remedy:
        findCommand('apt-get') === undefined
          ? `install (Debian names): ${names.join(' ')}`
          : `apt-get install ${names.join(' ')} (up does this by itself)`,
    }
  },
}

export const machineProbes: readonly Probe[] = [
  root,
  kernel,
  architecture,
  packages,
  memory,
  disk,
  openFiles,
  kvm,
  fuse,
]
