import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { makeSeccompProfile } from './profile.ts'
import { conditional, refusals } from './refused-calls.ts'
import { systemCalls } from './syscalls.ts'

const profile = makeSeccompProfile('x64')
const allowed = new Set(
  profile.syscalls.filter((rule) => rule.action === 'SCMP_ACT_ALLOW' && !rule.args).flatMap((rule) => rule.names),
)

suite('the seccomp profile', () => {
  test('each name that the seccomp profile refuses or restricts is a system call, and occurs only once', () => {
    const decided = [...refusals.flatMap((refusal) => refusal.calls), ...conditional]
    assert.deepEqual(
      decided.filter((name) => !systemCalls.includes(name)),
      [],
    )
    assert.equal(new Set(decided).size, decided.length)
    assert.equal(new Set(systemCalls).size, systemCalls.length)
  })

  test('a system call that the seccomp profile refuses or restricts is not also allowed unconditionally', () => {
    for (const name of ['mount', 'bpf', 'clone3', 'io_uring_setup', 'setns', 'keyctl', 'unshare', 'clone', 'socket'])
      assert.equal(allowed.has(name), false, name)
  })

  test('the seccomp profile allows the system calls that ordinary programs need', () => {
    for (const name of ['read', 'execve', 'futex', 'ptrace', 'chroot', 'fork', 'statx', 'rseq', 'memfd_create'])
      assert.equal(allowed.has(name), true, name)
  })

  test('no rule of the seccomp profile has the profile’s default error, which libseccomp would refuse', () => {
    assert.deepEqual(
      profile.syscalls.filter((rule) => rule.errnoRet === profile.defaultErrnoRet),
      [],
    )
  })

  test('the filter refuses system calls for new namespaces with EPERM, and unknown system calls with ENOSYS', () => {
    const [eperm, enosys] = [1, 38]
    const refusals = profile.syscalls.filter(
      ({ names, action }) => names[0] === 'unshare' && action === 'SCMP_ACT_ERRNO',
    )
    assert.deepEqual(new Set(refusals.map(({ errnoRet }) => errnoRet)), new Set([eperm]))
    assert.equal(profile.defaultErrnoRet, enosys)
  })

  test('the seccomp profile allows clone and unshare only if no flag for a new namespace is set', () => {
    const masks = profile.syscalls
      .filter((rule) => rule.names[0] === 'unshare' && rule.action === 'SCMP_ACT_ALLOW')
      .flatMap((rule) => rule.args ?? [])
    assert.deepEqual(masks, [{ index: 0, value: 0x7e020080, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }])
  })

  test('each netlink protocol has exactly one rule in the seccomp profile: allowed, or refused', () => {
    const answers = (protocol: number) =>
      profile.syscalls
        .filter(({ args }) => args?.[0]?.value === 16 && args[0].op === 'SCMP_CMP_EQ')
        .filter(({ args }) =>
          args?.[1]?.op === 'SCMP_CMP_GT' ? protocol > args[1].value : protocol === args?.[1]?.value,
        )
        .map(({ action, errnoRet }) => (action === 'SCMP_ACT_ALLOW' ? 'allowed' : errnoRet))
    const eprotonosupport = 93
    for (const protocol of [0, 1, 2, 3, 4, 9, 12, 15, 16, 21, 2 ** 32 - 1])
      assert.deepEqual(
        answers(protocol),
        [protocol === 0 || protocol === 4 ? 'allowed' : eprotonosupport],
        `${protocol}`,
      )
  })

  test('`makeSeccompProfile` throws for an architecture without a table of system calls', () => {
    assert.throws(() => makeSeccompProfile('mips'), /no system call filter for mips/)
  })
})
