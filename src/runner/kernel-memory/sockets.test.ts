import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import {
  findFullSockets,
  parseNetlinkBytes,
  parseSocketCount,
  parseUnacceptedBytes,
  parseUnsentBytes,
} from './sockets.ts'

suite('sockets whose memory is charged to no sandbox', () => {
  test('`parseNetlinkBytes` counts unread netlink messages and requests whose answers no process has read', () => {
    const [names = '', line = ''] = [
      'sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode',
      '0000000000000000 0   4711       00000000 157696   212992   1     2        0        28',
    ]
    assert.deepEqual([parseNetlinkBytes(names), parseNetlinkBytes(line), parseNetlinkBytes('')], [0, 370_688, 0])
  })

  test('`parseUnacceptedBytes` counts TCP connections that no process has accepted, not other sockets', () => {
    const line = (state: string, inode: string) =>
      `   1: 0100007F:07D0 0100007F:A001 ${state} 00000000:00010000 00:00000000 00000000     0        0 ${inode} 1 0`
    assert.deepEqual(
      [line('01', '0'), line('08', '0'), line('01', '4711'), line('0A', '4712'), line('06', '0')].map(
        parseUnacceptedBytes,
      ),
      [68_608, 68_608, 0, 0, 0],
    )
  })

  test('`parseUnsentBytes` counts UDP data that was not sent yet, but not UDP data that was received', () => {
    const names = '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode'
    const line =
      '13771: 00000000:BA73 00000000:0000 07 0000EDA0:0002C8C8 00:00000000 00000000     0        0 7657429 2 0 0'
    assert.equal(parseUnsentBytes(line), 60_832)
    assert.deepEqual([parseUnsentBytes(names), parseUnsentBytes('')], [0, 0])
  })

  test('`parseSocketCount` counts TCP and UDP sockets of IPv4 and IPv6', () => {
    const sockstat =
      'sockets: used 9\nTCP: inuse 29497 orphan 0 tw 0 alloc 9 mem 1\nUDP: inuse 3 mem 0\nUDPLITE: inuse 9\n'
    assert.equal(parseSocketCount(`${sockstat}TCP6: inuse 200\nUDP6: inuse 50\nUDPLITE6: inuse 9\n`), 29_750)
  })

  test('on the machine of the test, the socket tables in /proc have the columns that Alcove reads', async () => {
    assert.match(readFileSync('/proc/self/net/netlink', 'utf8'), /^sk +Eth +Pid +Groups +Rmem +Wmem /)
    assert.match(readFileSync('/proc/self/net/sockstat', 'utf8'), /^TCP: inuse \d+ /m)
    for (const name of ['tcp', 'udp'])
      assert.match(readFileSync(`/proc/self/net/${name}`, 'utf8'), /^ +sl +local_address +rem_address +st .* inode/)
    assert.equal(await findFullSockets(process.pid, 2 ** 40), undefined)
  })

  test('`findFullSockets` throws for a sandbox that has ended', async () => {
    await assert.rejects(findFullSockets(2 ** 22 + 1))
  })
})
