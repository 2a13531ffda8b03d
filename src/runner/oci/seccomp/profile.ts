// Makes the seccomp profile of every sandbox, in the format of the OCI runtime specification (`linux.seccomp`).
//
// An unknown call fails with ENOSYS ("not implemented"). A C library then tries an older call. After EPERM ("not permitted"), the
// library would give up.
import { conditional, refusals } from './refused-calls.ts'
import { systemCalls } from './syscalls.ts'

type Argument = {
  index: number
  value: number
  valueTwo?: number
  op: 'SCMP_CMP_EQ' | 'SCMP_CMP_GT' | 'SCMP_CMP_MASKED_EQ'
}
type Rule = {
  names: readonly string[]
  action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO'
  errnoRet?: number
  args?: Argument[]
}
export type SeccompProfile = {
  defaultAction: 'SCMP_ACT_ERRNO'
  defaultErrnoRet: number
  architectures: readonly string[]
  syscalls: readonly Rule[]
}

const errnos = { EPERM: 1, ENOSYS: 38, EPROTONOSUPPORT: 93, EAFNOSUPPORT: 97 } as const

/** Flags `CLONE_NEW…` of `linux/sched.h` for time, mount, cgroup, uts, ipc, user, pid and network namespaces. */
export const namespaceFlags = [0x80, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]

/** Namespace flags of the call `clone`. The flag of time namespaces is missing, because the lowest 8 bits are a signal number. */
export const cloneFlags = namespaceFlags.filter((flag) => flag > 0xff)

const sum = (flags: readonly number[]) => flags.reduce((all, flag) => all + flag, 0)

const withoutFlags = (name: string, flags: readonly number[]): Rule[] => [
  {
    names: [name],
    action: 'SCMP_ACT_ALLOW',
    args: [{ index: 0, value: sum(flags), valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
  },
  ...flags.map(
    (flag): Rule => ({
      names: [name],
      action: 'SCMP_ACT_ERRNO',
      errnoRet: errnos.EPERM,
      args: [{ index: 0, value: flag, valueTwo: flag, op: 'SCMP_CMP_MASKED_EQ' }],
    }),
  ),
]

/**
 * Allowed address families of sockets: unix, IPv4 and IPv6. Refused families are, for example, vsock (to the hypervisor), kernel
 * crypto and raw packets.
 */
export const addressFamilies = [1, 2, 10]

export const netlink = 16

/** Allowed netlink protocols: addresses and routes (0), and lists of sockets (4). Protocol 15 would report devices of the host. */
export const netlinkProtocols = [0, 4]

/**
 * Refused netlink protocols fail with EPROTONOSUPPORT, as on a kernel without these protocols. `useradd`, for example, then goes on
 * without the kernel's audit log.
 */
const withNetlink = (): Rule[] => {
  const rule = (protocol: number, op: Argument['op'], decision: Pick<Rule, 'action' | 'errnoRet'>): Rule => ({
    names: ['socket'],
    ...decision,
    args: [
      { index: 0, value: netlink, op: 'SCMP_CMP_EQ' },
      { index: 2, value: protocol, op },
    ],
  })
  const refused = { action: 'SCMP_ACT_ERRNO', errnoRet: errnos.EPROTONOSUPPORT } as const
  const most = Math.max(...netlinkProtocols)
  return [
    ...netlinkProtocols.map((protocol) => rule(protocol, 'SCMP_CMP_EQ', { action: 'SCMP_ACT_ALLOW' })),
    ...Array.from({ length: most }, (_, protocol) => protocol)
      .filter((protocol) => !netlinkProtocols.includes(protocol))
      .map((protocol) => rule(protocol, 'SCMP_CMP_EQ', refused)),
    rule(most, 'SCMP_CMP_GT', refused),
  ]
}

/**
 * Allowed values of personality(2). Flag 0x8: 32-bit Linux. Flag 0x20000: an old kernel version. Flag 0x40000: no address
 * randomization, for debuggers. Value 0xffffffff: the call only reads the current value.
 */
export const personalities = [0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff]

const whenFirstIs = (name: string, values: readonly number[]): Rule[] =>
  values.map((value) => ({ names: [name], action: 'SCMP_ACT_ALLOW', args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }] }))

const seccompArchitecture = (arch: string): string => {
  if (arch === 'x64') return 'SCMP_ARCH_X86_64'
  if (arch === 'arm64') return 'SCMP_ARCH_AARCH64'
  throw new Error(`There is no system call filter for ${arch}.`)
}

/** Makes the profile for one architecture. 32-bit programs have a filter of their own (`programs-32.ts`). */
export const makeSeccompProfile = (arch: string = process.arch): SeccompProfile => {
  const decided = new Set([...refusals.flatMap((refusal) => refusal.calls), ...conditional])
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: errnos.ENOSYS,
    architectures: [seccompArchitecture(arch)],
    syscalls: [
      { names: systemCalls.filter((name) => !decided.has(name)), action: 'SCMP_ACT_ALLOW' },
      // Calls that are refused with ENOSYS need no rule: ENOSYS is the default answer, and libseccomp rejects a rule with the
      // default answer.
      ...refusals
        .filter(({ answer }) => answer !== 'ENOSYS')
        .map(({ calls, answer }): Rule => ({ names: calls, action: 'SCMP_ACT_ERRNO', errnoRet: errnos[answer] })),
      ...withoutFlags('clone', cloneFlags),
      ...withoutFlags('unshare', namespaceFlags),
      ...whenFirstIs('personality', personalities),
      ...whenFirstIs('socket', addressFamilies),
      ...withNetlink(),
      {
        names: ['socket'],
        action: 'SCMP_ACT_ERRNO',
        errnoRet: errnos.EAFNOSUPPORT,
        args: [{ index: 0, value: netlink, op: 'SCMP_CMP_GT' }],
      },
    ],
  }
}
