// Makes the OCI runtime's configuration of one sandbox (runtime-spec: config.json). A pure function, so that the configuration
// can be tested without starting a sandbox.

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

/** The filter in the form that the runtime takes: compiled for crun, whose start is then 13 ms faster, otherwise as a profile. */
export type Filter = { kind: 'compiled'; base64: string } | { kind: 'profile'; profile: SeccompProfile }

export type SandboxConfig = {
  hostname: string
  /** Where `launch` mounts the root file system, in its private mount namespace. */
  rootfs: string
  /**
   * A directory with files that are bound over files of the image: the agent's program, the files about the machine, and the
   * sandbox's own hostname, hosts, resolv.conf and machine-id.
   */
  own: string
  /** File name of the agent's program in that directory. */
  agent: string
  /** Where the /sys of the sandbox's network namespace is mounted. */
  sys: string
  /** The processors that the sandbox is bound to, as a list (cpuset(7)). Undefined: all. */
  cpus: string | undefined
  /** The ids that the sandbox's users have on the host. */
  ids: readonly IdRange[]
  netnsPath: string
  cgroupsPath: string
  cgroupVersion: 1 | 2
  cpu: number
  memoryGiB: number
  /** Limit of the disk's speed. Undefined: no limit. */
  diskSpeed: DiskSpeed | undefined
  /** Whether the kernel counts swap. On a host where the kernel does not, a swap limit would make each start fail. */
  limitsSwap: boolean
  limitsSockets: boolean
  resourceLimits: readonly ResourceLimit[]
  filter: Filter
  /** Paths that are hidden in sandboxes (masked.ts). */
  maskedPaths: readonly string[]
  /** Volumes. `from` is where a volume is mounted on the host, `mountPath` its path inside the sandbox. */
  volumes: readonly { from: string; mountPath: string }[]
  /** Who may use sudo. Undefined: the sandbox has no sudo. */
  sudo: SudoPolicy | undefined
}

/** Who may use sudo besides root (a user, or `*` for everybody), and the PATH of the commands. */
export type SudoPolicy = { user: string; path: string }

/** Files that are mounted over kernel files that describe the host (shown/), and their paths inside. */
const shownFiles = [
  { name: 'meminfo', inside: '/proc/meminfo' },
  { name: 'cpuinfo', inside: '/proc/cpuinfo' },
  // The C library counts processors by this file (sysconf(3), _SC_NPROCESSORS_ONLN).
  { name: 'online', inside: '/sys/devices/system/cpu/online' },
] as const

/** Script that keeps the PATH of login shells. Its name sorts last, because `/etc/profile` runs scripts in order. */
export const loginPathScript = 'zz-alcove-path.sh'

/** Files of the sandbox that are mounted over the image's `/etc`: each with its name in `own` and its path below `/etc`. */
const ownEtcFiles = [
  ...['hostname', 'hosts', 'resolv.conf', 'machine-id'].map((name) => [name, name] as const),
  [loginPathScript, `profile.d/${loginPathScript}`],
] as const

/**
 * Limit of terminals in a sandbox. The kernel's own limit is for all sandboxes together, and the buffers of terminals count
 * towards no sandbox's memory limit.
 */
export const terminals = 256

/** The agent's program is in the sandbox's own /dev: it leaves nothing on the disk, and no file on the disk can hide it. */
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
 * PID 1 is the agent, but root inside the sandbox owns the writable files in `/proc/1`. For example `oom_score_adj`
 * (out-of-memory priority) and `autogroup` (scheduling group). Therefore `/proc/1` is read-only.
 */
const readonlyPaths = ['/proc/1', '/proc/bus', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
  destination,
  type,
  source,
  options,
})

const mounts = ({ agent, own, sys, memoryGiB, cgroupVersion, volumes }: SandboxConfig) => [
  // Volumes are mounted first. A symbolic link in the sandbox may lead a volume to /proc, /sys or /dev; the later mounts then
  // hide the volume.
  ...volumes.map(({ from, mountPath }) => mount(mountPath, 'bind', from, 'bind', 'nosuid', 'nodev')),
  mount('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
  mount('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=1m', `nr_inodes=${memoryFiles.dev}`),
  // Without `gid=5`: if that group is not mapped into the user namespace, the kernel refuses the mount.
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
  // The runtime mounts each v1 cgroup in a directory that it leaves writable.
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

/** The first part of the id, limited to characters that a host name may have. */
export const hostnameOf = (sandboxId: string) => sandboxId.slice(0, 12).replace(/[^A-Za-z0-9]+$/, '') || 'sandbox'

const blockIO = ({ major, minor, bytesPerSecond: rate }: DiskSpeed) => ({
  throttleReadBpsDevice: [{ major, minor, rate }],
  throttleWriteBpsDevice: [{ major, minor, rate }],
})

/** Filters can be joined, because the jumps in them are relative. */
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
      // With HOME set, the runtime does not read the sandbox's /etc/passwd, a file that could make the read wait forever.
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
