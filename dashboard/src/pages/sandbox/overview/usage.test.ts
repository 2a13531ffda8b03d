import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { curveOf, quantities, type Series, summaryOf } from './usage.ts'

const [cpu, memory] = quantities
const at = (minute: number) => new Date(minute * 60_000).toISOString()
const points = (metricName: string, pairs: [minute: number, value: number][]): Series[number] => ({
  metricName,
  dataPoints: pairs.map(([minute, value]) => ({ timestamp: at(minute), value })),
})

suite('the usage of a sandbox', () => {
  test('a usage curve has a gap while the sandbox did not run, but not while it was idle', () => {
    const series = [
      points(cpu.used, [
        [0, 10],
        [5, 20],
        [60, 30],
      ]),
    ]
    assert.deepEqual(curveOf(series, cpu), {
      times: [0, 300, 301, 3600],
      used: [10, 20, null, 30],
      limit: [null, null, null, null],
    })
  })

  test('a usage curve shows bytes as GiB, and at each point the limit of that time', () => {
    const gib = 1024 ** 3
    const series = [
      points(memory.used, [
        [0, gib / 2],
        [1, gib],
      ]),
      points(memory.limit, [
        [0, gib],
        [1, 2 * gib],
      ]),
    ]
    assert.deepEqual(curveOf(series, memory), { times: [0, 60], used: [0.5, 1], limit: [1, 2] })
  })

  test('a usage curve without measurements is empty, and an empty curve has no summary', () => {
    const curve = curveOf([], memory)
    assert.deepEqual(curve, { times: [], used: [], limit: [] })
    assert.equal(summaryOf(memory, curve), undefined)
  })

  test('the summary of a usage curve contains the last value, the limit, the highest value and the mean', () => {
    const curve = { times: [0, 60, 61, 3600], used: [0.5, 1, null, 0.3], limit: [2, 2, null, 4] }
    assert.equal(summaryOf(memory, curve), 'Last 307 MiB of 4 GiB, at most 1 GiB, 614 MiB on average')
    assert.equal(summaryOf(cpu, { times: [0], used: [0], limit: [null] }), 'Last 0 %, at most 0 %, 0 % on average')
  })
})
