import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import type { ProgramState } from './state-file.ts'
import { type Running, Supervised } from './supervised.ts'

const quick = { firstMs: 1, maxMs: 4, healthyMs: 60_000 }

/** A real process that does nothing until it is told to end. */
const startSleeper = async (): Promise<Running> => {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  const ended = once(child, 'exit').then(([code, signal]) => (signal ? `killed by ${signal}` : `exit code ${code}`))
  return { pid: child.pid as number, ready: Promise.resolve(), ended, stop: () => void child.kill('SIGTERM') }
}

/** Collects each change and lets a test wait for the first that fits. */
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

suite('a supervised program', () => {
  test('is started again after SIGKILL, as another process, and remembers why', async () => {
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

  test('is not started again once it was told to stop', async () => {
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

  test('is killed when it does not end by itself', async () => {
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

  test('counts every failing start, and one that throws is no different', async () => {
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

  test('may be stopped while it still waits to be started', async () => {
    const program = new Supervised({ name: 'waiting', start: () => new Promise<Running>(() => {}) }, () => {}, quick)
    program.begin()
    const keepAlive = setInterval(() => {}, 1000)
    await program.stop(10)
    clearInterval(keepAlive)
    assert.equal(program.state.pid, 0)
  })
})
