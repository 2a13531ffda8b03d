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
  test('a curve of `curveOf` has a gap while the sandbox did not run, but not while it was only idle', () => {
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

  test('`curveOf` converts bytes to GiB and adds to each point the limit at that time', () => {
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

  test('`curveOf` is empty if the series is missing, and `summaryOf` is undefined for an empty curve', () => {
    const curve = curveOf([], memory)
    assert.deepEqual(curve, { times: [], used: [], limit: [] })
    assert.equal(summaryOf(memory, curve), undefined)
  })

  test('`summaryOf` contains the last value, the limit, the highest value and the mean', () => {
    const curve = { times: [0, 60, 61, 3600], used: [0.5, 1, null, 0.3], limit: [2, 2, null, 4] }
    assert.equal(summaryOf(memory, curve), 'Last 307 MiB of 4 GiB, at most 1 GiB, 614 MiB on average')
    assert.equal(summaryOf(cpu, { times: [0], used: [0], limit: [null] }), 'Last 0 %, at most 0 %, 0 % on average')
  })
})
