import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findKernelWord } from './kernel-log.ts'

const init = { pid: 812, startTime: '150000' }

suite('the kernel log about a process that has ended', () => {
  test('`findKernelWord` returns "out of memory" if the kernel killed the process for want of memory', () => {
    const words = 'total-vm:4kB, anon-rss:2kB, UID:165536 oom_score_adj:0'
    for (const text of ['Memory cgroup out of memory: Killed process 812', 'Out of memory: Killed process 812'])
      assert.equal(findKernelWord(`[ 1600.000001] ${text} (agent) ${words}\n`, init), 'out of memory')
  })

  test('`findKernelWord` returns "crashed" for a process with a fault', () => {
    assert.equal(findKernelWord('[ 1600.1] agent[812]: segfault at 0 ip 0 sp 0 error 4 in agent', init), 'crashed')
    assert.equal(findKernelWord('[ 1600.1] traps: agent[812] general protection fault ip:0', init), 'crashed')
  })

  test('`findKernelWord` ignores log lines about other processes or an earlier process with the same id', () => {
    const killed = (pid: number, name = 'agent') =>
      `Memory cgroup out of memory: Killed process ${pid} (${name}) total-vm:1kB`
    assert.equal(findKernelWord(`[ 1600.1] ${killed(8120)}\n[ 1600.2] ${killed(81)}`, init), undefined)
    assert.equal(findKernelWord(`[ 1499.9] ${killed(812)}`, init), undefined)
    assert.equal(findKernelWord('', init), undefined)
    assert.equal(findKernelWord('dmesg: read kernel buffer failed', init), undefined)
  })

  test('a process cannot forge a line of the kernel log by choosing its name', () => {
    const named = 'd process 812 ('
    assert.equal(
      findKernelWord(`[ 1600.1] Memory cgroup out of memory: Killed process 9 (${named}) total-vm:1kB`, init),
      undefined,
    )
    const short = { pid: 8, startTime: '0' }
    assert.equal(findKernelWord('[ 1600.1] [8]: segfault a[99]: segfault at 0', short), undefined)
  })
})
