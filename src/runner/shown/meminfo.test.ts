import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { noMemoryUse } from '../cgroup/memory-use.ts'
import { renderMeminfo } from './meminfo.ts'

const MiB = 1024 ** 2
const read = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^(\S+): +(\d+) kB$/gm)].map(([, name, amount]) => [name, Number(amount) / 1024]),
  )

suite('the meminfo that a sandbox sees', () => {
  test('in a sandbox, MemTotal is its memory limit, and MemAvailable includes memory that can be freed', () => {
    const use = { ...noMemoryUse, used: 300 * MiB, cached: 120 * MiB, activeFile: 40 * MiB, inactiveFile: 60 * MiB }
    const shown = read(renderMeminfo(1, use))
    assert.deepEqual(
      [shown['MemTotal'], shown['MemFree'], shown['MemAvailable'], shown['Cached'], shown['SwapTotal']],
      [1024, 724, 824, 120, 0],
    )
  })

  test('no value in a sandbox’s /proc/meminfo is negative or above the sandbox’s memory limit', () => {
    assert.equal(read(renderMeminfo(1, { ...noMemoryUse, used: 1100 * MiB }))['MemFree'], 0)
    assert.equal(read(renderMeminfo(1, { ...noMemoryUse, activeFile: 10 * MiB }))['MemAvailable'], 1024)
  })

  test('a sandbox’s /proc/meminfo has the kernel’s format, and its first five lines have the kernel’s names', () => {
    const own = readFileSync('/proc/meminfo', 'utf8').split('\n')
    const shown = renderMeminfo(2, noMemoryUse).trimEnd().split('\n')
    const nameOf = (line: string) => line.split(':')[0]
    assert.deepEqual(shown.slice(0, 5).map(nameOf), own.slice(0, 5).map(nameOf))
    for (const line of shown) {
      assert.match(line, /^.{15,} +\d+ kB$/)
      assert.ok(own.map(nameOf).includes(nameOf(line)), line)
    }
  })
})
