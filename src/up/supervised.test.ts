import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import type { ProgramState } from './state-file.ts'
import { delayAfter, patience, type Running, Supervised } from './supervised.ts'

const quick = { firstMs: 1, maxMs: 4 }

/** Starts a process (`sleep`) that does nothing until it gets a signal. */
const startSleeper = async (): Promise<Running> => {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  const ended = once(child, 'exit').then(([code, signal]) => (signal ? `killed by ${signal}` : `exit code ${code}`))
  return { pid: child.pid as number, ready: Promise.resolve(), ended, stop: () => void child.kill('SIGTERM') }
}

/** Collects the states of a program, so that a test can wait for a certain state. */
const observe = () => {
  const seen: ProgramState[] = []
  const waiting: (() => void)[] = []
  return {
    seen,
    note: (program: Supervised) => {
      seen.push(program.state)
      for (const wake of waiting.splice(0)) wake()
    },
    until: async (fits: (state: ProgramState) => boolean): Promise<ProgramState> => {
      for (;;) {
        const found = seen.find(fits)
        if (found) return found
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
  }
}

suite('a program that `up` keeps running', () => {
  test('`up` starts a killed program again as a new process, and the program’s state says why it ended', async () => {
    const { note, until } = observe()
    const program = new Supervised({ name: 'sleeper', start: startSleeper }, note, quick)
    program.begin()
    const first = await until(({ state }) => state === 'ready')
    process.kill(first.pid, 'SIGKILL')
    const second = await until(({ state, restarts }) => state === 'ready' && restarts === 1)
    await program.stop(5000)
    assert.notEqual(second.pid, first.pid)
    assert.equal(second.lastEnd, 'killed by SIGKILL')
  })

  test('a program that control refuses has the state `refused` until control accepts it', async () => {
    const { seen, note, until } = observe()
    const told = Promise.withResolvers<(isRefused: boolean) => void>()
    const start = (onRefused: (isRefused: boolean) => void) => {
      told.resolve(onRefused)
      return startSleeper()
    }
    const program = new Supervised({ name: 'sleeper', start }, note, quick)
    program.begin()
    const { pid } = await until(({ state }) => state === 'ready')
    const onRefused = await told.promise
    onRefused(true)
    onRefused(false)
    await program.stop(5000)
    onRefused(true)
    assert.deepEqual(
      seen.map(({ state }) => state),
      ['starting', 'ready', 'refused', 'ready'],
    )
    assert.deepEqual(new Set(seen.map((each) => each.pid)), new Set([pid]))
  })

  test('`up` does not restart a program that `up` has asked to stop', async () => {
    let starts = 0
    const { note, until } = observe()
    const start = () => {
      starts += 1
      return startSleeper()
    }
    const program = new Supervised({ name: 'sleeper', start }, note, quick)
    program.begin()
    await until(({ state }) => state === 'ready')
    await program.stop(5000)
    assert.equal(starts, 1)
    assert.equal(program.state.pid, 0)
  })

  test('`up` kills a program that does not end after `up` has asked it to stop', async () => {
    const { note, until } = observe()
    let pid = 0
    const start = async (): Promise<Running> => {
      const running = await startSleeper()
      pid = running.pid
      return { ...running, stop: () => {} }
    }
    const program = new Supervised({ name: 'deaf', start }, note, quick)
    program.begin()
    await until(({ state }) => state === 'ready')
    await program.stop(10)
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })

  test('every failed start of a program counts as a restart, even if the start throws', async () => {
    const { note, until } = observe()
    const start = async (): Promise<Running> => {
      throw new Error('no such program')
    }
    const program = new Supervised({ name: 'broken', start }, note, quick)
    program.begin()
    const third = await until(({ restarts, state }) => restarts === 2 && state === 'waiting')
    await program.stop(5000)
    assert.equal(third.lastEnd, 'no such program')
  })

  test('the delay before a restart grows if the program ends early, but not if it has served for a while', () => {
    const delays = (served: number[]) => {
      let delay = 0
      return served.map((ms) => {
        delay = delayAfter(delay, ms, patience)
        return delay
      })
    }
    assert.deepEqual(delays(Array(8).fill(0)), [100, 200, 400, 800, 1600, 3200, 5000, 5000])
    // The argument of `delays`: how many ms the program serves after each start. The expected result: the delay in ms before each
    // next start.
    assert.deepEqual(delays([4000, 2500, 800, 4000, 900, 1900, 3900, 8000]), [100, 100, 200, 100, 200, 400, 800, 100])
    assert.deepEqual(delays([...Array(7).fill(0), 49_000, 50_000]).slice(-2), [5000, 100])
  })

  test('a program is restarted and stopped even if the function that hears of its state always throws', async (t) => {
    t.mock.method(console, 'error', () => {})
    const { seen, note, until } = observe()
    const failing = (changed: Supervised) => {
      note(changed)
      throw new Error('no space left')
    }
    const program = new Supervised({ name: 'sleeper', start: startSleeper }, failing, quick)
    program.begin()
    process.kill((await until(({ state }) => state === 'ready')).pid, 'SIGKILL')
    const second = await until(({ state, restarts }) => state === 'ready' && restarts === 1)
    await program.stop(5000)
    assert.equal(program.state.lastEnd, 'killed by SIGTERM')
    assert.throws(() => process.kill(second.pid, 0), { code: 'ESRCH' })
    assert.deepEqual(
      seen.map(({ state }) => state),
      ['starting', 'ready', 'waiting', 'starting', 'ready'],
    )
  })

  test('`up` can stop a program whose start has not finished', async () => {
    const program = new Supervised({ name: 'waiting', start: () => new Promise<Running>(() => {}) }, () => {}, quick)
    program.begin()
    const keepAlive = setInterval(() => {}, 1000)
    await program.stop(10)
    clearInterval(keepAlive)
    assert.equal(program.state.pid, 0)
  })
})
