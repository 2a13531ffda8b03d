import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Trial } from './trial.ts'

const MiB = 1024 ** 2

/** Returns a function that returns pseudo-random numbers, which are equal in each run of the test. */
const chance = () => {
  let state = 42
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return state / 2 ** 31
  }
}

/**
 * Makes a fake host. `rates`: MiB per second that each running sandbox leaks. `host`: MiB per second by which the host's own memory
 * grows. Each sandbox uses `comesAndGoes` MiB more while it is not frozen. Each measurement is wrong by at most `noise` MiB.
 */
const hostWith = (rates: Record<string, number>, { host = 0, comesAndGoes = 0, noise = 0.1, canHold = true } = {}) => {
  const held = new Set<string>()
  const random = chance()
  let bytes = 0
  const running = () => Object.entries(rates).filter(([id]) => !held.has(id))
  const parts = {
    random: chance(),
    runMs: 750,
    uncharged: () => bytes + (running().length * comesAndGoes + (random() - 0.5) * 2 * noise) * MiB,
    delay: async (ms: number) => {
      bytes += (running().reduce((sum, [, rate]) => sum + rate, host) * MiB * ms) / 1000
    },
    holdStill: async (id: string, release: AbortSignal) => {
      held.add(id)
      release.addEventListener('abort', () => held.delete(id), { once: true })
      return canHold
    },
  }
  const trial = new Trial(parts)
  const total = Object.values(rates).reduce((sum, rate) => sum + rate, host) * MiB
  /** Makes at most `bouts` measurements (`Trial.bout`). Returns the sandbox that was found, and the number of measurements. */
  const findIn = async (bouts: number): Promise<{ grower?: string; after: number }> => {
    for (let after = 1; after <= bouts; after++) {
      await trial.bout(Object.keys(rates), total)
      assert.equal(held.size, 0, 'all go on after each bout')
      const grower = trial.grower
      if (grower !== undefined) return { grower, after }
    }
    return { after: bouts }
  }
  return { trial, findIn }
}

const innocents = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`busy-${index}`, 0]))

suite('the trial that finds a sandbox whose kernel memory grows slowly', () => {
  test('`Trial` finds a sandbox that leaks 1 MiB of kernel memory a second, among 40 busy sandboxes', async () => {
    const { findIn } = hostWith({ ...innocents(40), attacker: 1 }, { comesAndGoes: 5 })
    const { grower, after } = await findIn(40)
    assert.equal(grower, 'attacker')
    assert.ok(after <= 30, String(after))
  })

  test('`Trial` finds a sandbox that leaks half a MiB of kernel memory a second, alone or among others', async () => {
    assert.equal((await hostWith({ attacker: 0.5 }).findIn(40)).grower, 'attacker')
    assert.equal((await hostWith({ ...innocents(3), attacker: 0.5 }).findIn(60)).grower, 'attacker')
  })

  test('if two sandboxes make kernel memory grow, one `Trial` finds either, the next `Trial` the other', async () => {
    const { grower } = await hostWith({ ...innocents(6), one: 1, two: 1 }).findIn(60)
    assert.match(String(grower), /^(one|two)$/)
    const other = grower === 'one' ? 'two' : 'one'
    assert.equal((await hostWith({ ...innocents(6), [other]: 1 }).findIn(60)).grower, other)
  })

  test('after 12 measurements, `Trial` reports that no sandbox is the cause if the host’s own memory grows', async () => {
    const { trial, findIn } = hostWith(innocents(5), { host: 2, comesAndGoes: 5 })
    assert.equal((await findIn(11)).grower, undefined)
    assert.equal(trial.isNobodys, false)
    assert.equal((await findIn(1)).grower, undefined)
    assert.equal(trial.isNobodys, true)
  })

  test('`Trial` does not blame a sandbox that causes only a small part of the growth of kernel memory', async () => {
    const { findIn } = hostWith({ ...innocents(3), little: 0.3 }, { host: 4, noise: 0.05 })
    assert.equal((await findIn(60)).grower, undefined)
  })

  test('`Trial` finds no sandbox if kernel memory does not grow, however often it measures', async () => {
    const { findIn } = hostWith(innocents(10), { comesAndGoes: 20, noise: 2 })
    assert.equal((await findIn(100)).grower, undefined)
  })

  test('`Trial` finds no sandbox if sandboxes cannot be frozen', async () => {
    const { findIn } = hostWith({ busy: 0, attacker: 1 }, { canHold: false })
    assert.equal((await findIn(40)).grower, undefined)
  })
})
