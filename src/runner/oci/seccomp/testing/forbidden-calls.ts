// For tests: calls that the filter of arguments (arguments.ts) must refuse, with the expected errors. Each row of the table
// `reasons` needs a call here; otherwise a test fails.
import { constants } from 'node:os'

const { EPERM, EAFNOSUPPORT, EPROTONOSUPPORT, EINVAL, ENOMEM, ENOPROTOOPT, ENOSPC, ENOTTY } = constants.errno
const ESOCKTNOSUPPORT = 94

type ForbiddenCall = { name: string; call: string; given: readonly number[]; errno: number }

const option = (name: string, level: number, number: number, errno: number = ENOPROTOOPT): ForbiddenCall => ({
  name,
  call: 'setsockopt',
  given: [3, level, number],
  errno,
})

const call = (name: string, errno: number, ...given: number[]): ForbiddenCall => ({ name, call: name, given, errno })

const [inet, inet6, vsock] = [2, 10, 40]
const [stream, datagram, packets] = [1, 2, 5]
const mptcp = 262

export const forbiddenCalls: readonly ForbiddenCall[] = [
  { ...call('socketpair', EAFNOSUPPORT, vsock, stream, 0), name: 'a pair of another family than unix' },
  ...[inet, inet6].flatMap((family) => [
    { ...call('socket', ESOCKTNOSUPPORT, family, packets, 0), name: `a packet socket of family ${family}` },
    { ...call('socket', EPROTONOSUPPORT, family, stream, mptcp), name: `MPTCP of family ${family}` },
    { ...call('socket', EPROTONOSUPPORT, family, datagram, 136), name: `UDP-Lite of family ${family}` },
  ]),
  option('SO_TIMESTAMPING_OLD', 1, 37),
  option('SO_TIMESTAMPING_NEW', 1, 65),
  option('IP_RECVERR', 0, 11, 0),
  option('IPV6_RECVERR', 41, 25, 0),
  option('SO_ATTACH_FILTER', 1, 26),
  option('SO_ATTACH_REUSEPORT_CBPF', 1, 51),
  option('TCP_MD5SIG', 6, 14),
  option('TCP_ULP', 6, 31),
  option('TCP_MD5SIG_EXT', 6, 32),
  ...[38, 39, 40, 41, 42, 43].map((number) => option(`TCP_AO, option ${number}`, 6, number)),
  { ...call('seccomp', EINVAL, 1, 8, 0), name: 'SECCOMP_FILTER_FLAG_NEW_LISTENER' },
  ...['setxattr', 'lsetxattr', 'fsetxattr'].map((each) => call(each, ENOSPC, 0, 0, 0, 1005, 0)),
  ...['poll', 'ppoll'].map((each) => call(each, EINVAL, 0, 2049, 0)),
  ...['select', 'pselect6'].map((each) => call(each, EINVAL, 2049, 0, 0, 0, 0)),
  { ...call('mmap', ENOMEM, 0, 4096, 0, 0x40022, -1, 0), name: 'MAP_HUGETLB' },
  { ...call('memfd_create', EINVAL, 0, 4), name: 'MFD_HUGETLB' },
  { ...call('shmget', ENOMEM, 0, 4096, 0o5600), name: 'SHM_HUGETLB' },
  ...(
    [
      ['BTRFS_IOC_SUBVOL_CREATE', 0x5000940e],
      ['BTRFS_IOC_SUBVOL_CREATE_V2', 0x50009418],
      ['BTRFS_IOC_SNAP_CREATE_V2', 0x50009417],
      ['BTRFS_IOC_SNAP_DESTROY', 0x5000940f],
      ['BTRFS_IOC_SUBVOL_SETFLAGS', 0x4008941a],
      ['BTRFS_IOC_DEV_INFO', 0xd000941e],
    ] as const
  ).map(([name, request]) => ({ ...call('ioctl', ENOTTY, 3, request, 0), name })),
  ...['prlimit64', 'sched_setparam', 'sched_setscheduler', 'sched_setattr', 'sched_setaffinity'].map((each) => ({
    ...call(each, EPERM, 1, 0, 0, 0),
    name: `${each} of PID 1`,
  })),
  { ...call('setpriority', EPERM, 0, 1, 0), name: 'the priority of PID 1' },
  { ...call('setpriority', EPERM, 1, 1, 0), name: 'the priority of the group of PID 1' },
  { ...call('setpriority', EPERM, 2, 0, 0), name: 'the priority of root' },
  { ...call('ioprio_set', EPERM, 1, 1, 0), name: 'input and output of PID 1' },
  { ...call('ioprio_set', EPERM, 2, 1, 0), name: 'input and output of the group of PID 1' },
  { ...call('ioprio_set', EPERM, 3, 0, 0), name: 'input and output of root' },
]
