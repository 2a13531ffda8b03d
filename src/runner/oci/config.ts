// What the OCI runtime is told about one sandbox (runtime-spec: config.json). A pure function: what it says of a sandbox
// can be read and tested without starting one.

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
import { uidCount } from './ids.ts'
import type { SeccompProfile } from './seccomp/profile.ts'

/** The filter, as the runtime at hand takes it: compiled for crun, which then starts 13 ms sooner, else the profile. */
export type Filter = { kind: 'compiled'; base64: string } | { kind: 'profile'; profile: SeccompProfile }

export type SandboxConfig = {
  hostname: string
  /** Where `launch` mounts the root filesystem, in its private mount namespace. */
  rootfs: string
  /**
   * A directory with files that are bound over those of the image: the agent's program, what the sandbox is shown of its
   * machine, and its own hostname, hosts, resolv.conf and machine-id.
   */
  own: string
  /** The name of the agent's program in there. */
  agent: string
  /** Where the /sys of its network namespace is mounted. */
  sys: string
  /** The processors that it is kept to, as a list (cpuset(7)); absent: all of them. */
  cpus: string | undefined
  /** The first id of its users on the host. */
  idBase: number
  netnsPath: string
  cgroupsPath: string
  cgroupVersion: 1 | 2
  cpu: number
  memoryGiB: number
  /** Absent: as fast as the disk is. */
  diskSpeed: DiskSpeed | undefined
  /** Whether the kernel counts swap at all; naming a limit where it does not fails the start. */
  limitsSwap: boolean
  limitsSockets: boolean
  resourceLimits: readonly ResourceLimit[]
  filter: Filter
  /** Where a sandbox finds nothing (masked.ts). */
  maskedPaths: readonly string[]
}

/** The files that a sandbox is shown in place of the kernel's own (shown/), and what each stands for inside. */
const shownFiles = [
  { name: 'meminfo', inside: '/proc/meminfo' },
  { name: 'cpuinfo', inside: '/proc/cpuinfo' },
  // Where the C library counts processors (sysconf(3), _SC_NPROCESSORS_ONLN).
  { name: 'online', inside: '/sys/devices/system/cpu/online' },
] as const

/** The script that keeps the PATH of login shells. Its name comes last, as `/etc/profile` runs them in order. */
export const loginPathScript = 'zz-alcove-path.sh'

/** Files of `/etc` that belong to the one sandbox and not to its image, and where they are there. */
const ownEtcFiles = [
  ...['hostname', 'hosts', 'resolv.conf', 'machine-id'].map((name) => [name, name] as const),
  [loginPathScript, `profile.d/${loginPathScript}`],
] as const

/** The kernel counts those of all sandboxes together, and what lies in their buffers counts as nobody's memory. */
export const terminals = 256

/** On the sandbox's own /dev, so that it leaves nothing on its disk and nothing on its disk can stand in its way. */
const agentPathInside = '/dev/.alcove/agent'

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
 * `/proc/1` is PID 1, which is ours, and root inside owns what can be written there: its place in the order in which processes
 * are killed for want of memory (`oom_score_adj`), its turns (`autogroup`), its name, and more.
 */
const readonlyPaths = ['/proc/1', '/proc/bus', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
  destination,
  type,
  source,
  options,
})

const mounts = ({ agent, own, sys, memoryGiB, cgroupVersion }: SandboxConfig) => [
  mount('/proc', 'proc', 'proc', 'nosuid', 'noexec', 'nodev'),
  mount('/dev', 'tmpfs', 'tmpfs', 'nosuid', 'strictatime', 'mode=755', 'size=1m', `nr_inodes=${memoryFiles.dev}`),
  // No `gid=5`: the group may not be mapped into the user namespace, and the kernel then refuses the mount.
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
  // The runtime mounts each cgroup of version 1 in a directory that it leaves writable.
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

/** The first part of the id, as a host name may be written. */
export const hostnameOf = (sandboxId: string) => sandboxId.slice(0, 12).replace(/[^A-Za-z0-9]+$/, '') || 'sandbox'

const blockIO = ({ major, minor, bytesPerSecond: rate }: DiskSpeed) => ({
  throttleReadBpsDevice: [{ major, minor, rate }],
  throttleWriteBpsDevice: [{ major, minor, rate }],
})

export const makeConfig = (sandbox: SandboxConfig) => {
  const identity = [{ containerID: 0, hostID: sandbox.idBase, size: uidCount }]
  const memory = memoryLimitBytes(sandbox)
  const { filter } = sandbox
  return {
    ociVersion: '1.0.2',
    hostname: sandbox.hostname,
    root: { path: sandbox.rootfs, readonly: false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: [agentPathInside],
      // Without a HOME the runtime would look one up in /etc/passwd, which may be something there that never answers.
      env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/'],
      cwd: '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
      rlimits: sandbox.resourceLimits,
    },
    mounts: mounts(sandbox),
    annotations: filter.kind === 'compiled' ? { 'run.oci.seccomp_bpf_data': filter.base64 } : {},
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
