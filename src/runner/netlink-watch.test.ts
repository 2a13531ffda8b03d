import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { NetlinkWatch, parseKernelBytes, parseWaiting } from './netlink-watch.ts'

suite('what waits in netlink sockets', () => {
  test('is read from the kernel’s own tables', () => {
    assert.equal(parseKernelBytes('Slab:  9 kB\nSUnreclaim:       12 kB\n'), 12 * 1024)
    const [names = '', line = ''] = [
      'sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode',
      '0000000000000000 0   4711       00000000 157696   0        0     2        0        28',
    ]
    assert.deepEqual([parseWaiting(names), parseWaiting(line), parseWaiting('')], [0, 157_696, 0])
  })

  test('is found in the tables of this machine', () => {
    assert.ok(parseKernelBytes(readFileSync('/proc/meminfo', 'utf8')) > 0)
    assert.match(readFileSync('/proc/self/net/netlink', 'utf8'), /^sk +Eth +Pid +Groups +Rmem /)
  })

  test('is nothing of one that has ended before it is looked at', async () => {
    const guilty: string[] = []
    const onTooMuch = (sandboxId: string) => guilty.push(sandboxId)
    const watch = new NetlinkWatch({ onTooMuch, log: silentLog(), bounds: { grownBytes: -(2 ** 40), mostBytes: -1 } })
    try {
      watch.add('ended', { pid: 2 ** 22 + 1, startTime: '1' })
      await watch.look()
      await watch.look()
      assert.deepEqual(guilty, [])
    } finally {
      watch.close()
    }
  })
})
