import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  parseCompressedPages,
  parseKernelMemory,
  parsePagesAtHand,
  parseSocketPages,
  readKernelMemory,
} from './host-memory.ts'

suite('the kernel’s own memory on a host', () => {
  test('`unreclaimable` counts all of a host’s memory except free memory, programs’ pages, files and caches', () => {
    const meminfo = `MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    600 kB
Active:          300 kB
Inactive:        200 kB
Active(anon):     50 kB
Unevictable:      10 kB
KReclaimable:     90 kB
SReclaimable:     80 kB
SUnreclaim:       40 kB
Hugetlb:         100 kB
`
    const kB = 1024
    const expected = { unreclaimable: 200 * kB, reclaimable: 90 * kB, available: 600 * kB, total: 1000 * kB }
    assert.deepEqual(parseKernelMemory(meminfo), expected)
    assert.equal(parseKernelMemory(meminfo, { compressedBytes: 30 * kB, atHandBytes: 20 * kB }).unreclaimable, 150 * kB)
    assert.equal(parseKernelMemory(`${meminfo}Balloon: 50 kB\n`).unreclaimable, 150 * kB)
    assert.equal(parseCompressedPages('nr_zone 1\nnr_zspages 3\nnr_free_cma 0\n'), 3)
    const zoneinfo = `  pagesets
    cpu: 0
              count:    58669
              high:     152632
    cpu: 1
              count:    1
`
    assert.equal(parsePagesAtHand(zoneinfo), 58_670)
  })

  test('the kernel’s own memory on the test’s machine is more than 0 and less than the total memory', () => {
    const { unreclaimable, total } = readKernelMemory()
    assert.ok(unreclaimable > 0 && unreclaimable < total, `${unreclaimable} of ${total}`)
  })

  test('`parseSocketPages` returns the sum of the pages with data that waits in TCP and UDP sockets', () => {
    const sockstat =
      'sockets: used 40\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 300\nUDP: inuse 1 mem 20\nUDPLITE: inuse 0\n'
    assert.equal(parseSocketPages(sockstat), 320)
  })
})
