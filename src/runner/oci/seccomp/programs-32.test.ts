import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { makeFilterOf32Bits } from './programs-32.ts'
import { conditional, refusals } from './refused-calls.ts'
import { systemCalls } from './syscalls.ts'
import { systemCalls32 } from './syscalls-32.ts'
import { answerOf } from './testing/answer-of.ts'
import { forbiddenCalls } from './testing/forbidden-calls.ts'

const i386 = 0x40000003
const [EPERM, ENOMEM, EINVAL, ENOSYS, EPROTONOSUPPORT, EAFNOSUPPORT] = [1, 12, 22, 38, 93, 97]
const allowed = 0

const filter = makeFilterOf32Bits('x64')
const lowerHalf = (value: number) => BigInt(value >>> 0)
const numberOf = (call: string) => systemCalls32.get(call) ?? assert.fail(`${call} has no number`)
const answers = (call: string, ...given: number[]) => answerOf(filter, numberOf(call), given.map(lowerHalf), i386)

suite('the seccomp filter of 32-bit programs', () => {
  test('every 32-bit system call number in Alcove’s table equals the number in the kernel’s header', {
    skip: !existsSync('/usr/include/x86_64-linux-gnu/asm/unistd_32.h') && 'needs asm/unistd_32.h',
  }, () => {
    const header = readFileSync('/usr/include/x86_64-linux-gnu/asm/unistd_32.h', 'utf8')
    for (const [, name = '', number] of header.matchAll(/^#define __NR_(\w+)\s+(\d+)/gm))
      assert.equal(systemCalls32.get(name), Number(number), name)
  })

  test('the filter of 32-bit system calls refuses the calls that the filter of 64-bit system calls refuses', () => {
    const refused = new Map(
      refusals.flatMap(({ calls, answer }) => calls.map((call) => [call, answer === 'EPERM' ? EPERM : ENOSYS])),
    )
    const judgedByArguments = [...conditional, 'socketpair', 'mmap', 'select']
    for (const [call] of systemCalls32) {
      if (judgedByArguments.includes(call) || !systemCalls.includes(call)) continue
      assert.equal(answers(call, 0, 0), refused.get(call) ?? allowed, call)
    }
    for (const number of [222, 223, 251, 285, 392, 415, 600, 0x40000000, 0xffffffff])
      assert.equal(answerOf(filter, number, [], i386), ENOSYS, `${number}`)
  })

  test('the filter of 32-bit system calls refuses the same arguments as the filter of 64-bit system calls', () => {
    const forms: Record<string, string[]> = {
      mmap: ['mmap2'],
      select: ['_newselect'],
      ppoll: ['ppoll', 'ppoll_time64'],
      pselect6: ['pselect6', 'pselect6_time64'],
    }
    for (const { name, call, given, errno } of forbiddenCalls)
      for (const form of forms[call] ?? [call]) assert.equal(answers(form, ...given), errno, `${name}: ${form}`)
    assert.equal(answers('mmap2', 0, 4096, 3, 0x22), allowed)
    assert.equal(answers('ppoll_time64', 0, 2048), allowed)
  })

  test('32-bit system calls cannot make namespaces or sockets that the filter refuses to 64-bit calls', () => {
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      assert.equal(answers('clone', flag | 17), EPERM)
      assert.equal(answers('unshare', flag), EPERM)
    }
    assert.equal(answers('unshare', 0x80), EPERM)
    assert.deepEqual([answers('clone', 0x3d0f00), answers('unshare', 0x400)], [allowed, allowed])
    assert.deepEqual([answers('personality', 0xffffffff), answers('personality', 0x400000)], [allowed, ENOSYS])
    for (const family of [1, 2, 10]) assert.equal(answers('socket', family, 1, 0), allowed)
    for (const [family, errno] of [
      [3, ENOSYS],
      [17, EAFNOSUPPORT],
      [38, EAFNOSUPPORT],
      [40, EAFNOSUPPORT],
    ] as const)
      assert.equal(answers('socket', family, 3, 0), errno)
    for (const protocol of [0, 4]) assert.equal(answers('socket', 16, 3, protocol), allowed)
    for (const protocol of [1, 9, 12, 15, 4096]) assert.equal(answers('socket', 16, 3, protocol), EPROTONOSUPPORT)
  })

  test('32-bit programs cannot avoid the filter by system calls with many operations, such as socketcall', () => {
    const [socket, bind, socketpair, setsockopt, sendmsg] = [1, 2, 8, 14, 16]
    for (const call of [socket, socketpair, setsockopt]) assert.equal(answers('socketcall', call, 0x1000), ENOSYS)
    for (const call of [bind, sendmsg]) assert.equal(answers('socketcall', call, 0x1000), allowed)
    const [shmget, version] = [23, 1 << 16]
    for (const call of [shmget, shmget | version]) {
      assert.equal(answers('ipc', call, 0, 4096, 0o5600), ENOMEM)
      assert.equal(answers('ipc', call, 0, 4096, 0o1600), allowed)
    }
    for (const call of ['mmap', 'select', 'vm86', 'vm86old', 'io_pgetevents_time64', 'modify_ldt'])
      assert.equal(answers(call, 0), ENOSYS, call)
    for (const call of ['umount', 'stime', 'clock_settime64', 'clock_adjtime64']) assert.equal(answers(call, 0), EPERM)
    assert.equal(answers('pselect6_time64', 2049), EINVAL)
  })

  test('the filter of 32-bit system calls decides about no 64-bit call; on arm64 there is no such filter', () => {
    for (const architecture of [0xc000003e, 0xc00000b7, 0]) {
      assert.equal(answerOf(filter, 11, [], architecture), undefined)
      assert.equal(answerOf(filter, 21, [], architecture), undefined)
    }
    assert.equal(makeFilterOf32Bits('arm64').length, 0)
  })
})
