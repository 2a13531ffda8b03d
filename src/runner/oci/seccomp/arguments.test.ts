import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { makeArgumentFilter, makeVolumeFilter, numbers, reasons } from './arguments.ts'
import type { Forbidden } from './program.ts'
import { systemCalls } from './syscalls.ts'
import { answerOf } from './testing/answer-of.ts'
import { forbiddenCalls } from './testing/forbidden-calls.ts'

const goesOn = undefined

const lowerHalf = (value: number) => BigInt(value >>> 0)

const isMet = ({ when }: Forbidden, given: readonly number[]) =>
  when.every((condition) => {
    const value = ((given[condition.argument] ?? 0) & (condition.bits ?? -1)) >>> 0
    if ('is' in condition) return value === condition.is
    return 'isNot' in condition ? value !== condition.isNot : value > condition.above
  })

suite('the seccomp filter that refuses arguments of system calls', () => {
  for (const [arch, calls] of [
    [
      'x64',
      {
        read: 0,
        ioctl: 16,
        setsockopt: 54,
        socket: 41,
        mmap: 9,
        setpriority: 141,
        fsetxattr: 190,
        ppoll: 271,
        pselect6: 270,
      },
    ],
    [
      'arm64',
      {
        read: 63,
        ioctl: 29,
        setsockopt: 208,
        socket: 198,
        mmap: 222,
        setpriority: 140,
        fsetxattr: 7,
        ppoll: 73,
        pselect6: 72,
      },
    ],
  ] as const)
    test(`the filter refuses exactly the forbidden arguments, even with bits set that the kernel ignores: ${arch}`, () => {
      const filter = makeArgumentFilter(arch)
      const answers = (call: keyof typeof calls, ...given: number[]) =>
        [0n, 1n << 32n].map((upper) =>
          answerOf(
            filter,
            calls[call],
            given.map((each) => upper | BigInt(each)),
          ),
        )
      const expect = (result: unknown, call: keyof typeof calls, ...given: number[]) =>
        assert.deepEqual(answers(call, ...given), [result, result], `${call} ${given}`)
      expect(goesOn, 'read', 1, 1, 26)
      expect(92, 'setsockopt', 9, 1, 26)
      expect(0, 'setsockopt', 9, 0, 11)
      for (const [level, name] of [
        [1, 11],
        [6, 26],
        [0, 26],
      ] as const)
        expect(goesOn, 'setsockopt', 9, level, name)
      const [nonblocking, huge] = [0x800, 0x40000]
      for (const protocol of [0, 1, 6, 17, 58]) expect(goesOn, 'socket', 2, 1 | nonblocking, protocol)
      for (const protocol of [33, 132, 136, 262]) expect(93, 'socket', 10, 2 | nonblocking, protocol)
      expect(94, 'socket', 2, 5, 0)
      for (const other of [
        [2, 3, 255],
        [1, 5, 0],
        [16, 3, 4],
      ] as const)
        expect(goesOn, 'socket', ...other)
      const [ficlone, ficlonerange, tcgets] = [0x40049409, 0x4020940d, 0x5401]
      for (const request of [ficlone, ficlonerange, tcgets]) expect(goesOn, 'ioctl', 3, request, 4)
      for (const request of [0x5000940e, 0x50009401]) expect(25, 'ioctl', 3, request, 0)
      expect(12, 'mmap', 0, 4096, 3, 0x22 | huge)
      expect(goesOn, 'mmap', 0, 4096, 3, 0x22)
      expect(1, 'setpriority', 0, 1)
      expect(goesOn, 'setpriority', 0, 11)
      expect(1, 'setpriority', 2, 0)
      expect(goesOn, 'fsetxattr', 3, 0, 0, 1004)
      expect(28, 'fsetxattr', 3, 0, 0, 1005)
      expect(goesOn, 'ppoll', 0, 2048)
      expect(22, 'ppoll', 0, 2049)
      expect(goesOn, 'pselect6', 2048)
      expect(22, 'pselect6', 2049)
      for (const name of [14, 31, 32, 38]) expect(92, 'setsockopt', 9, 6, name)
    })

  test('in a sandbox with volumes, no system call makes files share disk blocks (FICLONE)', () => {
    const request = [3n, 0x40049409n, 4n]
    const answers = (filter: Buffer, architecture: number, [ioctl, copy]: [number, number]) => [
      ...[0x40049409n, 0x4020940dn, 0x5401n].map((each) => answerOf(filter, ioctl, [3n, each, 4n], architecture)),
      answerOf(filter, copy, request, architecture),
      answerOf(filter, 0, request, architecture),
    ]
    const expected = [95, 95, goesOn, 38, goesOn]
    assert.deepEqual(answers(makeVolumeFilter('x64'), 0xc000003e, [16, 326]), expected)
    assert.deepEqual(answers(makeVolumeFilter('x64'), 0x40000003, [54, 377]), expected)
    assert.deepEqual(answers(makeVolumeFilter('arm64'), 0xc00000b7, [29, 285]), expected)
  })

  for (const arch of ['x64', 'arm64'] as const)
    test(`each system call with forbidden arguments fails with the expected error: ${arch}`, () => {
      const filter = makeArgumentFilter(arch)
      for (const { name, call, given, errno } of forbiddenCalls) {
        const number = numbers[call]?.[arch]
        if (number === undefined) continue
        assert.equal(answerOf(filter, number, given.map(lowerHalf)), errno, name)
      }
    })

  test('the tests try forbidden arguments for each rule of the filter, with each system call of the rule', () => {
    const untried = reasons.flatMap(({ forbidden }) =>
      forbidden.flatMap((row) =>
        row.calls
          .filter((call) => !forbiddenCalls.some((each) => each.call === call && isMet(row, each.given)))
          .map((call) => `${call} ${JSON.stringify(row.when)}`),
      ),
    )
    assert.deepEqual(untried, [])
  })

  test('each name in the filter of system call arguments is the name of a system call', () => {
    const names = reasons.flatMap(({ forbidden }) => forbidden.flatMap(({ calls }) => calls))
    assert.deepEqual(
      names.filter((name) => !systemCalls.includes(name)),
      [],
    )
  })

  for (const [arch, header] of [
    ['x64', '/usr/include/x86_64-linux-gnu/asm/unistd_64.h'],
    ['arm64', '/usr/include/asm-generic/unistd.h'],
  ] as const)
    test(`every system call number in Alcove’s table equals the number in the kernel’s header: ${arch}`, {
      skip: !existsSync(header) && `needs ${header}`,
    }, () => {
      const lines = readFileSync(header, 'utf8').matchAll(/^#define __NR(?:3264)?_(\w+)\s+(\d+)/gm)
      const known = new Map([...lines].map(([, name = '', number]) => [name, Number(number)]))
      for (const [name, { [arch]: number }] of Object.entries(numbers)) assert.equal(number, known.get(name), name)
    })

  test('`makeArgumentFilter` throws for an architecture without a table of system calls', () => {
    assert.throws(() => makeArgumentFilter('mips'), /no system call filter for mips/)
  })
})
