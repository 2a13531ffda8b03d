import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findGrower } from './experiment.ts'
import { Ledger } from './ledger.ts'

const MiB = 1024 ** 2

/**
 * Makes a fake host. `rates`: MiB per second by which each sandbox makes memory grow while it is not frozen. `host`: MiB per second
 * by which memory grows without any sandbox.
 */
const hostWith = (rates: Record<string, number>, host = 0) => {
  const held = new Set<string>()
  let unreleased = 0
  const everHeld = new Set<string>()
  let bytes = 0
  return {
    held,
    everHeld,
    /** Number of sandboxes that `findGrower` has frozen and not released. */
    unreleased: () => unreleased,
    parts: {
      uncharged: () => bytes,
      delay: async (ms: number) => {
        const running = Object.entries(rates).filter(([id]) => !held.has(id))
        bytes += (running.reduce((sum, [, rate]) => sum + rate, host) * MiB * ms) / 1000
      },
      holdStill: async (id: string, release: AbortSignal) => {
        held.add(id)
        everHeld.add(id)
        unreleased += 1
        const letGo = () => {
          held.delete(id)
          unreleased -= 1
        }
        release.addEventListener('abort', letGo, { once: true })
        return true
      },
    },
  }
}

suite('the experiment that finds the sandbox that makes kernel memory grow', () => {
  test('`findGrower` finds the sandbox that causes the growth, even if other suspects come first in the list', async () => {
    const { parts, held } = hostWith({ busy: 0, attacker: 200, other: 0 })
    assert.equal(await findGrower(parts, ['busy', 'other', 'attacker']), 'attacker')
    assert.equal(held.size, 0, 'all go on')
  })

  test('`findGrower` finds a sandbox that causes slow growth of kernel memory', async () => {
    const { parts } = hostWith({ busy: 0, attacker: 10 })
    assert.equal(await findGrower(parts, ['busy', 'attacker']), 'attacker')
  })

  test('if two sandboxes make kernel memory grow, `findGrower` finds the first, and its next call the second', async () => {
    const { parts } = hostWith({ one: 100, two: 100 })
    assert.equal(await findGrower(parts, ['one', 'two']), 'one')
    const after = hostWith({ two: 100 })
    assert.equal(await findGrower(after.parts, ['two']), 'two')
  })

  test('if the host itself makes memory grow, `findGrower` finds no sandbox and thaws all frozen sandboxes', async () => {
    const { parts, held, everHeld } = hostWith({ busy: 0, other: 0 }, 200)
    assert.equal(await findGrower(parts, ['busy', 'other']), undefined)
    assert.equal(everHeld.size, 2)
    assert.equal(held.size, 0)
  })

  test('`findGrower` freezes no sandbox if kernel memory has stopped growing', async () => {
    const { parts, everHeld } = hostWith({ busy: 0 })
    assert.equal(await findGrower(parts, ['busy']), undefined)
    assert.equal(everHeld.size, 0)
  })

  test('`findGrower` does not blame a sandbox that was only running while the host’s own memory grew', async () => {
    const { parts, held } = hostWith({ busy: 0 })
    let bytes = 0
    let growths = 0
    let wasHeld = false
    const uncharged = () => bytes
    // The host's own memory grows twice: before any sandbox is frozen, and then once while the sandbox `busy` runs.
    const wait = async () => {
      wasHeld ||= held.size > 0
      if (held.size === 0 && (!wasHeld || growths++ < 1)) bytes += 16 * MiB
    }
    assert.equal(await findGrower({ ...parts, uncharged, delay: wait }, ['busy']), undefined)
  })

  test('`findGrower` does not blame a sandbox that uses kernel memory only while its programs run', async () => {
    const { parts, held } = hostWith({ busy: 0, attacker: 0 })
    let kept = 0
    const uncharged = () => kept + (held.has('busy') ? 0 : 24 * MiB)
    const wait = async () => {
      if (held.size === 0) kept += 16 * MiB
    }
    assert.equal(await findGrower({ ...parts, uncharged, delay: wait }, ['busy', 'attacker']), undefined)
  })

  test('`findGrower` does not blame a sandbox whose memory is freed when it is frozen, and thaws the sandbox', async () => {
    const { parts, held, unreleased } = hostWith({ busy: 0 })
    let bytes = 0
    const wait = async () => {
      bytes = held.has('busy') ? 0 : bytes + 16 * MiB
    }
    assert.equal(await findGrower({ ...parts, uncharged: () => bytes, delay: wait }, ['busy']), undefined)
    assert.equal(unreleased(), 0)
  })

  test('`findGrower` finds the sandbox that causes the growth, even if another suspect cannot be frozen', async () => {
    const { parts } = hostWith({ stubborn: 0, attacker: 200 })
    const holdStill: typeof parts.holdStill = async (id, release) =>
      id !== 'stubborn' && (await parts.holdStill(id, release))
    assert.equal(await findGrower({ ...parts, holdStill }, ['stubborn', 'attacker']), 'attacker')
  })

  test('`findGrower` does not blame a sandbox that cannot be frozen', async () => {
    const { parts } = hostWith({ attacker: 200 })
    assert.equal(await findGrower({ ...parts, holdStill: async () => false }, ['attacker']), undefined)
  })
})

suite('how sandboxes are blamed for growth of kernel memory', () => {
  test('`Ledger` blames sandboxes for growth in proportion to the CPU time that the kernel spent for each', () => {
    const ledger = new Ledger()
    ledger.note(
      0,
      new Map([
        ['old', 1000],
        ['busy', 5],
      ]),
    )
    assert.deepEqual(ledger.suspects(), [])
    ledger.note(
      100,
      new Map([
        ['old', 1000],
        ['busy', 6],
        ['new', 3],
      ]),
    )
    assert.deepEqual(ledger.suspects(), [
      ['new', 75],
      ['busy', 25],
    ])
    ledger.remove('new')
    assert.deepEqual(ledger.suspects(), [['busy', 25]])
    ledger.forgive()
    assert.deepEqual(ledger.suspects(), [])
  })
})
