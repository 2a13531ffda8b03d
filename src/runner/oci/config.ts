// Makes the configuration of a sandbox for the OCI runtime (config.json). A pure function makes it, so tests need not start a
// sandbox.

import {
  cpuLimit,
  memoryFiles,
  memoryLimitBytes,
  pidsLimit,
  type ResourceLimit,
  sharedMemoryBytes,
  socketLimitBytes,
} from '#src/runner/cgroup/sandbox-limits.ts'
import type { DiskSpeed } from '../cgroup/disk-speed.ts'
import type { IdRange } from './ids.ts'
import { makeVolumeFilter } from './seccomp/arguments.ts'
import type { SeccompProfile } from './seccomp/profile.ts'

/** The system call filter. crun gets the filter compiled, which makes a start 13 ms faster; other runtimes need a profile. */
export type Filter = { kind: 'compiled'; base64: string } | { kind: 'profile'; profile: SeccompProfile }

export type SandboxConfig = {
  hostname: string
  /** Path at which the launcher mounts the root file system, in the launcher's own mount namespace. */
  rootfs: string
  /**
   * Directory of files that are mounted over files of the image: the agent's program, files about the machine, and the sandbox's
   * own hostname, hosts, resolv.conf and machine-id.
   */
  own: string
  /** File name of the agent's program in the directory `own`. */
  agent: string
  /** Path at which the launcher mounts the /sys that belongs to the sandbox's network namespace. */
  sys: string
  /** The processors on which the sandbox may run, as a list (cpuset(7)). Undefined: all processors. */
  cpus: string | undefined
  /** Maps the user ids in the sandbox to user ids on the host. */
  ids: readonly IdRange[]
  netnsPath: string
  cgroupsPath: string
  cgroupVersion: 1 | 2
  cpu: number
  memoryGiB: number
  /** Limit of the speed at which the disk is read and written. Undefined: no limit. */
  diskSpeed: DiskSpeed | undefined
  /** Whether the kernel can limit swap. If the kernel cannot, the configuration has no swap limit, because the start would fail. */
  limitsSwap: boolean
  limitsSockets: boolean
  resourceLimits: readonly ResourceLimit[]
  filter: Filter
  /** Paths that are hidden in the sandbox (masked.ts). */
  maskedPaths: readonly string[]
  /** The sandbox's volumes. `from`: where the volume is mounted on the host. `mountPath`: the volume's path in the sandbox. */
  volumes: readonly { from: string; mountPath: string }[]
  /** Who may use sudo. Undefined: the sandbox has no sudo. */
  sudo: SudoPolicy | undefined
}

/** `user`: the user who may use sudo besides root, or `*` for every user. `path`: the PATH of sudo's commands. */
export type SudoPolicy = { user: string; path: string }

/**
 * Files that show the sandbox's own memory and processors (shown/). `inside`: the kernel's file over which the shown file is
 * mounted.
 */
const shownFiles = [
  { name: 'meminfo', inside: '/proc/meminfo' },
  { name: 'cpuinfo', inside: '/proc/cpuinfo' },
  // From this file, the C library reads the number of processors (sysconf(3), _SC_NPROCESSORS_ONLN).
  { name: 'online', inside: '/sys/devices/system/cpu/online' },
] as const

/**
 * Script that sets PATH in login shells. `/etc/profile` sets a different PATH and then runs scripts in alphabetical order. This
 * script's name makes it run last.
 */
export const loginPathScript = 'zz-alcove-path.sh'

/**
 * Files of the runner that are mounted over files of the image. Each pair: the file's name in the directory `own`, and the path
 * below `/etc` on which this file is mounted.
 */
const ownEtcFiles = [
  ...['hostname', 'hosts', 'resolv.conf', 'machine-id'].map((name) => [name, name] as const),
  [loginPathScript, `profile.d/${loginPathScript}`],
] as const

/**
 * Maximum number of terminals in a sandbox. All sandboxes share the kernel's limit, and buffers of terminals are uncharged memory.
 */
export const terminals = 256

/** Path of the agent's program in the sandbox. The program is in /dev because no file on the sandbox's disk can cover it there. */
export const agentPathInside = '/dev/.alcove/agent'
const sudoSocketInside = '/dev/.alcove/sudo'

const agentArguments = ({ sudo }: SandboxConfig) =>
  sudo === undefined ? [agentPathInside] : [agentPathInside, '--sudo', sudoSocketInside, sudo.user, sudo.path]

const capabilities = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_SETGID',
  'CAP_SETUID',
  'CAP_SETPCAP',
  'CAP_NET_BIND_SERVICE',
  'CAP_SYS_CHROOT',
  'CAP_SETFCAP',
]

/**
 * Paths that are read-only in the sandbox. `/proc/1` belongs to the agent: the sandbox's root user could otherwise make the kernel
 * kill the agent when memory is short (`oom_score_adj`).
 */
const readonlyPaths = ['/proc/1', '/proc/bus', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
  destination,
  type,
  source,
  options,
})

const mounts = ({ agent, own, sys, memoryGiB, cgroupVersion, volumes }: SandboxConfig) => [
  // Volumes are mounted first. If a symbolic link leads a volume to /proc, /sys or /dev, the real /proc, /sys or /dev is then
  // mounted over the volume.
  ...volumes.map(({ from, mountPath }) => mount(mountPath, 'bind', from, 'bind', 'nosuid', 'nodev')),
  mount('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
  mount('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=1m', `nr_inodes=${memoryFiles.dev}`),
  // The usual option `gid=5` is left out, because the kernel refuses the mount if the user namespace does not contain group 5.
  mount(
    '/dev/pts',
    'devpts',
    'devpts',
    'nosuid',
    'noexec',
    'newinstance',
    'ptmxmode=0666',
    'mode=0620',
    `max=${terminals}`,
  ),
  mount(
    '/dev/shm',
    'tmpfs',
    'shm',
    'nosuid',
    'noexec',
    'nodev',
    'mode=1777',
    `size=${sharedMemoryBytes(memoryGiB)}`,
    `nr_inodes=${memoryFiles.shm}`,
  ),
  mount('/dev/mqueue', 'mqueue', 'mqueue', 'nosuid', 'noexec', 'nodev'),
  mount('/sys', 'bind', sys, 'bind', 'ro', 'nosuid', 'noexec', 'nodev'),
  mount('/sys/fs/cgroup', 'cgroup', 'cgroup', 'nosuid', 'noexec', 'nodev', 'relatime', 'ro'),
  // With cgroup v1, the runtime leaves /sys/fs/cgroup itself writable, and mounts only the hierarchies in it read-only. Remount
  // /sys/fs/cgroup read-only.
  ...(cgroupVersion === 1
    ? [mount('/sys/fs/cgroup', 'tmpfs', 'tmpfs', 'remount', 'nosuid', 'noexec', 'nodev', 'ro')]
    : []),
  mount(agentPathInside, 'bind', `${own}/${agent}`, 'bind', 'ro', 'nosuid', 'nodev'),
  ...shownFiles.map(({ name, inside }) =>
    mount(inside, 'bind', `${own}/${name}`, 'bind', 'ro', 'nosuid', 'noexec', 'nodev'),
  ),
  ...ownEtcFiles.map(([name, inside]) =>
    mount(`/etc/${inside}`, 'bind', `${own}/${name}`, 'bind', 'nosuid', 'noexec', 'nodev'),
  ),
]

/** Returns the beginning of the sandbox's id, with only characters that a host name may have. */
export const hostnameOf = (sandboxId: string) => sandboxId.slice(0, 12).replace(/[^A-Za-z0-9]+$/, '') || 'sandbox'

const blockIO = ({ major, minor, bytesPerSecond: rate }: DiskSpeed) => ({
  throttleReadBpsDevice: [{ major, minor, rate }],
  throttleWriteBpsDevice: [{ major, minor, rate }],
})

/**
 * Returns the compiled filter for a sandbox. With volumes, a second filter is put before `base64`. Filters can be joined, because
 * their jumps are relative.
 */
const filterFor = (base64: string, { volumes }: SandboxConfig): string =>
  volumes.length === 0 ? base64 : Buffer.concat([makeVolumeFilter(), Buffer.from(base64, 'base64')]).toString('base64')

export const makeConfig = (sandbox: SandboxConfig) => {
  const identity = sandbox.ids.map(({ inside, outside, count }) => ({
    containerID: inside,
    hostID: outside,
    size: count,
  }))
  const memory = memoryLimitBytes(sandbox)
  const { filter } = sandbox
  return {
    ociVersion: '1.0.2',
    hostname: sandbox.hostname,
    root: { path: sandbox.rootfs, readonly: false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: agentArguments(sandbox),
      // With HOME, the runtime does not read the sandbox's /etc/passwd, which could be a FIFO that blocks the runtime forever.
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/'],
      cwd: '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
      rlimits: sandbox.resourceLimits,
    },
    mounts: mounts(sandbox),
    annotations: filter.kind === 'compiled' ? { 'run.oci.seccomp_bpf_data': filterFor(filter.base64, sandbox) } : {},
    linux: {
      namespaces: [
        { type: 'user' },
        { type: 'pid' },
        { type: 'mount' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'cgroup' },
        { type: 'network', path: sandbox.netnsPath },
      ],
      uidMappings: identity,
      gidMappings: identity,
      cgroupsPath: sandbox.cgroupsPath,
      resources: {
        devices: [{ allow: false, access: 'rwm' }],
        cpu: { ...cpuLimit(sandbox), ...(sandbox.cpus === undefined ? {} : { cpus: sandbox.cpus }) },
        memory: {
          limit: memory,
          ...(sandbox.limitsSwap ? { swap: memory } : {}),
          ...(sandbox.limitsSockets ? { kernelTCP: socketLimitBytes(sandbox) } : {}),
        },
        ...(sandbox.diskSpeed === undefined ? {} : { blockIO: blockIO(sandbox.diskSpeed) }),
        pids: { limit: pidsLimit(sandbox) },
      },
      maskedPaths: sandbox.maskedPaths,
      readonlyPaths,
      ...(filter.kind === 'profile' ? { seccomp: filter.profile } : {}),
    },
  }
}
