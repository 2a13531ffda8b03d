import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { MeterReading, MeterSample } from '#src/wire/meter-reading.ts'
import { Sampler } from './sampler.ts'

const MiB = 1024 * 1024
const idle: MeterReading = {
  cpuCount: 1,
  cpuUsedPct: 0,
  memTotal: 1024 * MiB,
  memUsed: 10 * MiB,
  memCache: 0,
  diskTotal: 3072 * MiB,
  diskUsed: 0,
}

const start = () => {
  const state = { now: 0, isUp: true, readings: new Map<string, MeterReading>(), said: [] as MeterSample[][] }
  const sampler = new Sampler({
    measureAll: async () => new Map(state.readings),
    say: (samples) => {
      if (state.isUp) state.said.push([...samples])
      return state.isUp
    },
    everySeconds: 0,
    log: silentLog(),
    now: () => state.now,
  })
  /** Moves the clock forward. Returns the sandboxes of which samples were sent to control. */
  const lookAfter = async (seconds: number) => {
    state.now += seconds * 1000
    state.said = []
    await sampler.look()
    return state.said.flat().map(({ sandboxId }) => sandboxId)
  }
  return { state, lookAfter, [Symbol.dispose]: () => sampler[Symbol.dispose]() }
}

suite('samples of what sandboxes use', () => {
  test('a runner sends a sample of a sandbox’s use when the use has changed, and at least every five minutes', async () => {
    using sampling = start()
    const { state, lookAfter } = sampling
    state.readings = new Map([
      ['a', idle],
      ['b', idle],
    ])
    assert.deepEqual(await lookAfter(0), ['a', 'b'])
    assert.deepEqual(await lookAfter(60), [])
    state.readings.set('a', { ...idle, memUsed: idle.memUsed + MiB })
    assert.deepEqual(await lookAfter(60), ['a'])
    state.readings.set('b', { ...idle, diskTotal: 1 })
    assert.deepEqual(await lookAfter(60), ['b'])
    // Each of these two changes alone is too small to be reported, but both together are reported.
    for (const part of [0.4, 0.8]) {
      state.readings.set('a', { ...idle, memUsed: idle.memUsed + MiB, cpuUsedPct: part })
      assert.deepEqual(await lookAfter(10), [])
    }
    state.readings.set('a', { ...idle, memUsed: idle.memUsed + MiB, cpuUsedPct: 1.2 })
    assert.deepEqual(await lookAfter(10), ['a'])
    assert.deepEqual(await lookAfter(300), ['a', 'b'])
  })

  test('a message of a runner to control contains at most 500 samples of use', async () => {
    using sampling = start()
    for (let count = 0; count < 1200; count++) sampling.state.readings.set(`box-${count}`, idle)
    assert.equal((await sampling.lookAfter(0)).length, 1200)
    assert.deepEqual(
      sampling.state.said.map(({ length }) => length),
      [500, 500, 200],
    )
  })

  test('a sample of a sandbox’s use that could not be sent is sent at the next reading', async () => {
    using sampling = start()
    const { state, lookAfter } = sampling
    state.readings.set('a', idle)
    state.isUp = false
    assert.deepEqual(await lookAfter(0), [])
    state.isUp = true
    assert.deepEqual(await lookAfter(60), ['a'])
    state.readings.delete('a')
    await lookAfter(60)
    state.readings.set('a', idle)
    assert.deepEqual(await lookAfter(60), ['a'])
  })
})
