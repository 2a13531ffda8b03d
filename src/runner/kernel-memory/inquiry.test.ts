import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Finding, Inquiry } from './inquiry.ts'

const MiB = 1024 ** 2
const pauseMs = 30_000

/** Makes a fake host with two innocent sandboxes and an attacker, which makes kernel memory grow by `rate` MiB per second. */
const hostWith = ({
  rate,
  isInSlabs = true,
  wholeNoise = 0,
}: {
  rate: () => number
  isInSlabs?: boolean
  wholeNoise?: number
}) => {
  const held = new Set<string>()
  let holds = 0
  let ms = 0
  let bytes = 0
  let measurements = 0
  const delay = async (forMs: number) => {
    ms += forMs
    if (!held.has('attacker')) bytes += (rate() * MiB * forMs) / 1000
  }
  const inquiry = new Inquiry(
    {
      uncharged: () => 1000 * MiB + bytes + wholeNoise * MiB * [0, 1, -1, -0.5, 0.7][measurements++ % 5]!,
      slabs: () =>
        new Map([
          ['kmalloc-512', isInSlabs ? bytes : 0],
          ['kmalloc-64', MiB],
        ]),
      holdStill: async (sandboxId, release) => {
        holds += 1
        held.add(sandboxId)
        release.addEventListener('abort', () => held.delete(sandboxId), { once: true })
        return true
      },
      delay,
      now: () => ms,
      runMs: 750,
    },
    1 * MiB,
  )
  const inquire = async (steps: number): Promise<Finding> => {
    for (let step = 0; step < steps; step++) {
      await delay(pauseMs)
      const finding = await inquiry.step(['one', 'two', 'attacker'])
      if (finding !== 'nothing yet') return finding
    }
    return 'nothing yet'
  }
  return { inquire, holds: () => holds }
}

suite('finding the cause of slow growth of kernel memory (`Inquiry`)', () => {
  test('an inquiry finds the sandbox that fills a slab cache, although other kernel memory grows and shrinks', async () => {
    assert.deepEqual(await hostWith({ rate: () => 1, wholeNoise: 50 }).inquire(30), { grower: 'attacker' })
  })

  test('an inquiry finds a sandbox that fills kernel memory outside of the slab caches', async () => {
    assert.deepEqual(await hostWith({ rate: () => 1, isInSlabs: false }).inquire(30), { grower: 'attacker' })
  })

  test('an inquiry ends without freezing a sandbox if kernel memory has stopped growing before it begins', async () => {
    const { inquire, holds } = hostWith({ rate: () => 0 })
    assert.equal(await inquire(2), 'over')
    assert.equal(holds(), 0)
  })

  test('an inquiry ends when kernel memory stops growing', async () => {
    let steps = 0
    const { inquire } = hostWith({ rate: () => (steps++ < 5 ? 1 : 0) })
    assert.equal(await inquire(40), 'over')
  })
})
