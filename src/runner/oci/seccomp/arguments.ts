// Lists system calls that are refused only with certain arguments, and why. Makes the filter program that refuses these calls. The
// kernel runs this program before the compiled profile (profile.ts).
//
// libseccomp compares whole arguments, but the kernel uses only the lower half of an `int`. A caller could pass a check of the
// profile by setting a bit of the upper half. The program made here compares only the lower half.
import { assemble, type Forbidden, forbid, onlyFor } from './program.ts'
import { systemCalls32 } from './syscalls-32.ts'

type Reason = { reason: string; forbidden: readonly Forbidden[] }

/** Error numbers with which a filter answers a refused call. `done`: the call does nothing, but reports success. */
const errnos = {
  done: 0,
  EPERM: 1,
  ENOMEM: 12,
  EINVAL: 22,
  ENOTTY: 25,
  ENOSPC: 28,
  ENOSYS: 38,
  ENOPROTOOPT: 92,
  EPROTONOSUPPORT: 93,
  ESOCKTNOSUPPORT: 94,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
} as const

const option = (level: number, name: number, errno: number): Forbidden => ({
  calls: ['setsockopt'],
  when: [
    { argument: 1, is: level },
    { argument: 2, is: name },
  ],
  errno,
})

const flag = (call: string, argument: number, bit: number, errno: number): Forbidden => ({
  calls: [call],
  when: [{ argument, bits: bit, is: bit }],
  errno,
})

/** Maximum bytes of an extended attribute that a program may set: an access control list (acl(5)) with 125 entries. */
const mostAttributeBytes = 1004
/** Maximum number of file descriptors for which one call may wait. */
const mostPolled = 2048

/** The argument `type` of `socket`, without its flags (`SOCK_NONBLOCK`, `SOCK_CLOEXEC`). */
const kind = { argument: 1, bits: 0xf } as const
const inet = [2, 10] as const
const [stream, datagram, raw] = [1, 2, 3]

/** Allowed protocols of sockets: the default of the family, ICMP, TCP, UDP and ICMPv6. */
const protocols = [0, 1, 6, 17, 58]

const [ficlone, ficlonerange] = [0x40049409, 0x4020940d]

export const reasons: readonly Reason[] = [
  {
    reason: 'A pair is only ever of unix sockets; trying for one of another family loads that family into the kernel.',
    forbidden: [{ calls: ['socketpair'], when: [{ argument: 0, isNot: 1 }], errno: errnos.EAFNOSUPPORT }],
  },
  {
    reason:
      'So does a protocol that hardly anybody uses. Without the right to raw sockets the kernel refuses those itself.',
    forbidden: inet.flatMap((family): Forbidden[] => [
      {
        calls: ['socket'],
        when: [{ argument: 0, is: family }, ...[stream, datagram, raw].map((each) => ({ ...kind, isNot: each! }))],
        errno: errnos.ESOCKTNOSUPPORT,
      },
      {
        calls: ['socket'],
        when: [
          { argument: 0, is: family },
          { ...kind, isNot: raw! },
          ...protocols.map((protocol) => ({ argument: 2, isNot: protocol })),
        ],
        errno: errnos.EPROTONOSUPPORT,
      },
    ]),
  },
  {
    reason:
      'What waits in the error queue of a socket (SO_TIMESTAMPING, IP_RECVERR, IPV6_RECVERR) counts as nobody’s memory, and no' +
      ' table tells how much it is. The C library’s resolver finds no name where it may not have its errors told; without them it' +
      ' hears of a server that is not there all the same.',
    forbidden: [
      option(1, 37, errnos.ENOPROTOOPT),
      option(1, 65, errnos.ENOPROTOOPT),
      option(0, 11, errnos.done),
      option(41, 25, errnos.done),
    ],
  },
  {
    reason:
      'The machine has a bounded room for compiled filters, and without room no sandbox starts. So none for sockets' +
      ' (SO_ATTACH_FILTER, SO_ATTACH_REUSEPORT_CBPF), and none that outlives its process in a descriptor' +
      ' (SECCOMP_FILTER_FLAG_NEW_LISTENER).',
    forbidden: [
      option(1, 26, errnos.ENOPROTOOPT),
      option(1, 51, errnos.ENOPROTOOPT),
      flag('seccomp', 1, 8, errnos.EINVAL),
    ],
  },
  {
    reason:
      'Access lists of files (POSIX ACLs) count as nobody’s memory, and hang on every inode that is in use. The kernel takes 64 KiB' +
      ' of them, which is more than a hundred times what the file itself costs. A bound on the size of any attribute is what' +
      ' a filter can see; ext4 answers so as well.',
    forbidden: [
      {
        calls: ['setxattr', 'lsetxattr', 'fsetxattr'],
        when: [{ argument: 3, above: mostAttributeBytes }],
        errno: errnos.ENOSPC,
      },
    ],
  },
  {
    reason:
      'A call that waits for descriptors keeps 64 bytes for each, which count as nobody’s memory: 4 MiB for each thread.' +
      ' epoll(7) has no such bound, and what it keeps is charged.',
    forbidden: [
      { calls: ['poll', 'ppoll'], when: [{ argument: 1, above: mostPolled }], errno: errnos.EINVAL },
      { calls: ['select', 'pselect6'], when: [{ argument: 0, above: mostPolled }], errno: errnos.EINVAL },
    ],
  },
  {
    reason:
      'Keys that sign TCP segments (TCP_MD5SIG, TCP_MD5SIG_EXT, TCP_AO) and protocols above TCP in the kernel (TCP_ULP) count as' +
      ' nobody’s memory. Routers use the former; libraries go on without the latter.',
    forbidden: [14, 31, 32, 38, 39, 40, 41, 42, 43].map((name) => option(6, name, errnos.ENOPROTOOPT)),
  },
  {
    reason:
      'Huge pages that the operator has set aside are the machine’s, and count as nobody’s memory. These are the answers of a' +
      ' machine that has none.',
    forbidden: [
      flag('mmap', 3, 0x40000, errnos.ENOMEM),
      flag('memfd_create', 1, 4, errnos.EINVAL),
      flag('shmget', 2, 0o4000, errnos.ENOMEM),
    ],
  },
  {
    reason:
      'A volume is a directory of btrfs, which lets every user make subvolumes: those would be outside of the limit of the volume,' +
      ' and it could not be removed. Copies that share their bytes (FICLONE, FICLONERANGE) stay for sandboxes without volumes. This is' +
      ' the answer of a file system that is not btrfs.',
    forbidden: [
      {
        calls: ['ioctl'],
        when: [
          { argument: 1, bits: 0xff00, is: 0x9400 },
          { argument: 1, isNot: ficlone },
          { argument: 1, isNot: ficlonerange },
        ],
        errno: errnos.ENOTTY,
      },
    ],
  },
  {
    reason:
      'PID 1 is ours: by its limits or its turns a sandbox would end it, and look as if it was ended from outside.',
    forbidden: [
      {
        calls: ['prlimit64', 'sched_setparam', 'sched_setscheduler', 'sched_setattr', 'sched_setaffinity'],
        when: [{ argument: 0, is: 1 }],
        errno: errnos.EPERM,
      },
      // Calls that would affect process 1 or process group 1. PID 1 is the agent.
      ...[
        ['setpriority', 0],
        ['setpriority', 1],
        ['ioprio_set', 1],
        ['ioprio_set', 2],
      ].map(
        ([call, which]): Forbidden => ({
          calls: [call as string],
          when: [
            { argument: 0, is: which as number },
            { argument: 1, is: 1 },
          ],
          errno: errnos.EPERM,
        }),
      ),
      // Calls that affect all processes of a user. The agent belongs to the sandbox's root, so such a call of root would affect the
      // agent.
      { calls: ['setpriority'], when: [{ argument: 0, is: 2 }], errno: errnos.EPERM },
      { calls: ['ioprio_set'], when: [{ argument: 0, is: 3 }], errno: errnos.EPERM },
    ],
  },
]

export const forbiddenArguments: readonly Forbidden[] = reasons.flatMap(({ forbidden }) => forbidden)

/**
 * Calls that make files share blocks, without a check of a volume's size limit. These calls are refused only in sandboxes with
 * volumes. Programs then copy the bytes instead.
 */
const sharedCopies: readonly Forbidden[] = [
  ...[ficlone, ficlonerange].map(
    (request): Forbidden => ({ calls: ['ioctl'], when: [{ argument: 1, is: request }], errno: errnos.EOPNOTSUPP }),
  ),
  { calls: ['copy_file_range'], when: [], errno: errnos.ENOSYS },
]

/** The numbers of all system calls that this file names, on x86-64 and on arm64. arm64 lacks some older calls. */
export const numbers: Record<string, { x64: number; arm64?: number }> = {
  copy_file_range: { x64: 326, arm64: 285 },
  fsetxattr: { x64: 190, arm64: 7 },
  ioctl: { x64: 16, arm64: 29 },
  ioprio_set: { x64: 251, arm64: 30 },
  lsetxattr: { x64: 189, arm64: 6 },
  memfd_create: { x64: 319, arm64: 279 },
  mmap: { x64: 9, arm64: 222 },
  poll: { x64: 7 },
  ppoll: { x64: 271, arm64: 73 },
  prlimit64: { x64: 302, arm64: 261 },
  pselect6: { x64: 270, arm64: 72 },
  sched_setaffinity: { x64: 203, arm64: 122 },
  sched_setattr: { x64: 314, arm64: 274 },
  sched_setparam: { x64: 142, arm64: 118 },
  sched_setscheduler: { x64: 144, arm64: 119 },
  seccomp: { x64: 317, arm64: 277 },
  select: { x64: 23 },
  setpriority: { x64: 141, arm64: 140 },
  setsockopt: { x64: 54, arm64: 208 },
  setxattr: { x64: 188, arm64: 5 },
  shmget: { x64: 29, arm64: 194 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
}

/**
 * Makes the program that refuses forbidden arguments. All other calls go on to the next filter, which refuses calls of other
 * architectures.
 */
export const makeArgumentFilter = (arch: string = process.arch): Buffer => {
  if (arch !== 'x64' && arch !== 'arm64') throw new Error(`There is no system call filter for ${arch}.`)
  return assemble(forbid(forbiddenArguments, (call) => numbers[call]?.[arch]))
}

/** The kernel's numbers of processor architectures (`AUDIT_ARCH_*` of `linux/audit.h`). */
const architectures = { x64: 0xc000003e, arm64: 0xc00000b7, i386: 0x40000003 }

/**
 * Makes the filter against calls that make files share blocks (`sharedCopies`). In a sandbox with volumes, this filter comes first.
 */
export const makeVolumeFilter = (arch: string = process.arch): Buffer => {
  if (arch !== 'x64' && arch !== 'arm64') throw new Error(`There is no system call filter for ${arch}.`)
  const of32Bits = onlyFor(
    architectures.i386,
    forbid(sharedCopies, (call) => systemCalls32.get(call)),
  )
  const native = onlyFor(
    architectures[arch],
    forbid(sharedCopies, (call) => numbers[call]?.[arch]),
  )
  return assemble([...of32Bits, ...native])
}
