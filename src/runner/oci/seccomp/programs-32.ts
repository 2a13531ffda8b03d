// Makes the filter for the 32-bit (i386) table of system calls on x86-64, which 64-bit programs can use too (`int 0x80`). This
// filter refuses what the profile refuses. It also refuses calls whose arguments are in memory, because a filter cannot read
// memory.
//
// libseccomp is not used for this table, because it handles the call `socketcall` too broadly. A rule for one kind of socket would
// apply to every socket.
import { forbiddenArguments } from './arguments.ts'
import { addressFamilies, cloneFlags, namespaceFlags, netlink, netlinkProtocols, personalities } from './profile.ts'
import { answerByNumber, assemble, type Forbidden, forbid, onlyFor, type Range } from './program.ts'
import { refusals } from './refused-calls.ts'
import { systemCalls32 } from './syscalls-32.ts'

/** The kernel's number of the 32-bit architecture (`AUDIT_ARCH_I386` of `linux/audit.h`). */
const i386 = 0x40000003

const [EPERM, ENOMEM, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT] = [1, 12, 38, 93, 97]

type Refusal = { reason: string; calls: readonly string[]; errno: number }

const more: readonly Refusal[] = [
  { reason: 'Older or newer forms of calls that are refused.', calls: ['umount', 'stime'], errno: EPERM },
  {
    reason: 'Forms of refused calls with a clock of 64 bits.',
    calls: ['clock_settime64', 'clock_adjtime64'],
    errno: EPERM,
  },
  { reason: 'A form of a call that is missing.', calls: ['io_pgetevents_time64'], errno: ENOSYS },
  {
    reason: 'Their arguments lie in memory. C libraries have used mmap2 and _newselect instead for decades.',
    calls: ['mmap', 'select'],
    errno: ENOSYS,
  },
  { reason: 'Programs of 16 bits do not run here.', calls: ['vm86', 'vm86old'], errno: ENOSYS },
]

/** Names of 64-bit calls with restricted arguments, each with the 32-bit calls that do the same work. */
const forms: Readonly<Record<string, readonly string[]>> = {
  mmap: ['mmap2'],
  select: ['_newselect'],
  pselect6: ['pselect6', 'pselect6_time64'],
  ppoll: ['ppoll', 'ppoll_time64'],
}

const sum = (flags: readonly number[]) => flags.reduce((all, flag) => all + flag, 0)

/** Calls that the profile allows only for some arguments. */
const conditional: readonly Forbidden[] = [
  { calls: ['clone'], when: [{ argument: 0, bits: sum(cloneFlags), isNot: 0 }], errno: EPERM },
  { calls: ['unshare'], when: [{ argument: 0, bits: sum(namespaceFlags), isNot: 0 }], errno: EPERM },
  { calls: ['personality'], when: personalities.map((each) => ({ argument: 0, isNot: each })), errno: ENOSYS },
  { calls: ['socket'], when: [{ argument: 0, above: netlink }], errno: EAFNOSUPPORT },
  {
    calls: ['socket'],
    when: [{ argument: 0, is: netlink }, ...netlinkProtocols.map((protocol) => ({ argument: 2, isNot: protocol }))],
    errno: EPROTONOSUPPORT,
  },
  {
    calls: ['socket'],
    when: [...addressFamilies, netlink].map((family) => ({ argument: 0, isNot: family })),
    errno: ENOSYS,
  },
]

/** Numbers by which the first argument of `socketcall` names a socket call, from `linux/net.h`. */
const socketCalls = { socket: 1, socketpair: 8, setsockopt: 14 } as const
const shmget = 23

/**
 * Calls whose first argument chooses an operation. The call `socketcall` may not make sockets or set options, because its other
 * arguments are in memory, which a filter cannot read. Therefore 32-bit programs with glibc or Go cannot make sockets. Programs
 * with musl can: they use the call `socket`.
 */
const multiplexed: readonly Forbidden[] = [
  ...Object.values(socketCalls).map(
    (call): Forbidden => ({ calls: ['socketcall'], when: [{ argument: 0, is: call }], errno: ENOSYS }),
  ),
  {
    calls: ['ipc'],
    when: [
      { argument: 0, bits: 0xffff, is: shmget },
      { argument: 3, bits: 0o4000, is: 0o4000 },
    ],
    errno: ENOMEM,
  },
]

const withForms = (row: Forbidden): Forbidden => ({ ...row, calls: row.calls.flatMap((call) => forms[call] ?? [call]) })

export const forbidden32: readonly Forbidden[] = [...forbiddenArguments.map(withForms), ...conditional, ...multiplexed]

/** Maps the name of each 32-bit call to the filter's error number. 0: the call is allowed, unless its arguments are forbidden. */
const errnoOf = (): ReadonlyMap<string, number> => {
  const refused = [
    ...refusals.map(({ calls, answer }) => ({ calls, errno: answer === 'EPERM' ? EPERM : ENOSYS })),
    ...more,
  ]
  const errnos = new Map(refused.flatMap(({ calls, errno }) => calls.map((call) => [call, errno] as const)))
  return new Map([...systemCalls32.keys()].map((call) => [call, errnos.get(call) ?? 0]))
}

const ranges = (): Range[] => {
  const errnos = errnoOf()
  const numbers = new Map([...systemCalls32].map(([call, number]) => [number, errnos.get(call) as number]))
  const beyond = Math.max(...numbers.keys()) + 1
  const all = Array.from({ length: beyond + 1 }, (_, from) => ({ from, errno: numbers.get(from) ?? ENOSYS }))
  return all.filter(({ errno }, at) => at === 0 || errno !== all[at - 1]?.errno)
}

/**
 * Makes the part of a sandbox's filter for the 32-bit table. 64-bit calls go on to the next part. Empty on an architecture without
 * 32-bit programs.
 */
export const makeFilterOf32Bits = (arch: string = process.arch): Buffer => {
  if (arch !== 'x64') return Buffer.alloc(0)
  return assemble(
    onlyFor(i386, [...forbid(forbidden32, (call) => systemCalls32.get(call)), ...answerByNumber(ranges())]),
  )
}
