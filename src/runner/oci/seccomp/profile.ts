// The seccomp profile of every sandbox, in the format of the OCI runtime specification (`linux.seccomp`).
//
// Unknown calls answer ENOSYS and not EPERM. A C library that tries a newer call falls back to the older one after "not
// implemented", but gives up after "not permitted".
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

/** `CLONE_NEW…` of `linux/sched.h`: time, mount, cgroup, uts, ipc, user, pid and network namespaces. */
export const namespaceFlags = [0x80, 0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]

/** Namespace flags that `clone` knows. The bit of the time namespace is missing: in `clone` it belongs to the exit signal. */
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

/** Address families: unix, IPv4 and IPv6. Refused: virtual-machine sockets to the host, kernel crypto and raw packets. */
export const addressFamilies = [1, 2, 10]

export const netlink = 16

/**
 * Protocols for addresses and routes (0) and for lists of sockets (4), which `ip`, `ss` and C libraries use. Protocol 15 is
 * missing, because it would report devices of the host.
 */
export const netlinkProtocols = [0, 4]

/**
 * Rules for netlink. Programs such as `useradd` continue if the kernel has no auditing, but give up if auditing is not permitted.
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
 * Personalities that a program may set: Linux, 32-bit, the old version number, 32-bit with the old version number, and no address
 * randomization (for debuggers). The last value only asks for the current personality.
 */
export const personalities = [0x0, 0x8, 0x20000, 0x20008, 0x40000, 0xffffffff]

const whenFirstIs = (name: string, values: readonly number[]): Rule[] =>
  values.map((value) => ({ names: [name], action: 'SCMP_ACT_ALLOW', args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }] }))

const seccompArchitecture = (arch: string): string => {
  if (arch === 'x64') return 'SCMP_ARCH_X86_64'
  if (arch === 'arm64') return 'SCMP_ARCH_AARCH64'
  throw new Error(`There is no system call filter for ${arch}.`)
}

/** The profile for a single architecture. Programs of 32 bits have a filter of their own: `programs-32.ts`. */
export const makeSeccompProfile = (arch: string = process.arch): SeccompProfile => {
  const decided = new Set([...refusals.flatMap((refusal) => refusal.calls), ...conditional])
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: errnos.ENOSYS,
    architectures: [seccompArchitecture(arch)],
    syscalls: [
      { names: systemCalls.filter((name) => !decided.has(name)), action: 'SCMP_ACT_ALLOW' },
      // Refusals with ENOSYS need no rule: this is the default, and libseccomp rejects rules that repeat the default.
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
