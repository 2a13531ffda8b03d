// Tests why a joined runner ends, and what it prints then. A program that does nothing takes the runner's place.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, symlinkSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { readStatus } from '#src/cli/status.ts'
import { Complaint } from './complaint.ts'
import { prepareDataDirectory } from './data-directory.ts'
import { keepJoined } from './keep-joined.ts'
import { findUpState, writeUpState } from './state-file.ts'
import type { Program } from './supervised.ts'

suite('a runner that has joined', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-join-'))
  const data = prepareDataDirectory(join(scratch, 'data'))
  after(() => {
    rmSync(scratch, { recursive: true, force: true })
    rmSync(data.runtime, { recursive: true, force: true })
  })

  /**
   * Returns what `alcove status` shows after the process of `keepJoined` has ended. Because this process is the test itself, the
   * function first writes a pid that no process has into the state file.
   */
  const statusLater = async () => {
    const left = findUpState(data.stateFile)
    assert.ok(left)
    writeUpState(data.stateFile, { ...left, pid: 0, startTime: '' })
    return await readStatus(data.path)
  }

  /**
   * Starts the joined runner. `refuse`: once the runner serves, the server refuses the runner's key. `stop`: once the runner
   * serves, `keepJoined` is asked to stop.
   */
  const start = (then: { refuse?: true; stop?: true }) => {
    const said: string[] = []
    let starts = 0
    const stopAsked = Promise.withResolvers<string>()
    let kill = () => {}
    let pid = 0
    const program: Program = {
      name: 'runner',
      start: async (onRefused) => {
        const child = spawn('sleep', ['600'], { stdio: 'ignore' })
        pid = child.pid ?? 0
        kill = () => void child.kill('SIGKILL')
        starts += 1
        setImmediate(() => {
          if (then.refuse) onRefused(true)
          if (then.stop) stopAsked.resolve('SIGTERM')
        })
        const ended = once(child, 'exit').then(([code, signal]) => String(signal ?? code))
        return { pid, ready: Promise.resolve(), ended, stop: () => void child.kill('SIGTERM') }
      },
    }
    const ended = keepJoined({
      data,
      controlUrl: new URL('http://127.0.0.1:4600'),
      runner: { id: 'second', regionId: 'local' },
      programs: [program],
      display: { say: (line) => said.push(line), endProgress: () => undefined },
      stopAsked: stopAsked.promise,
    })
    const serves = async (times: number) => {
      while (starts < times || findUpState(data.stateFile)?.programs[0]?.state !== 'ready') await pause(5)
    }
    const stop = () => stopAsked.resolve('SIGTERM')
    return { ended, stop, kill: () => kill(), serves, isThere: () => existsSync(`/proc/${pid}`), said }
  }

  test('a joined runner that the server refuses ends with a reason and a remedy; `alcove status` shows both', async () => {
    const { ended, isThere } = start({ refuse: true })
    await assert.rejects(
      ended,
      (error) =>
        error instanceof Complaint &&
        /^http:\/\/127\.0\.0\.1:4600 no longer accepts runner "second".*alcove runner add.*purge --data /.test(
          error.message,
        ),
    )
    assert.equal(isThere(), false)
    assert.deepEqual(await statusLater(), {
      running: false,
      ended: 'its server, http://127.0.0.1:4600, no longer accepts its token',
      programs: [],
    })
  })

  test('a joined runner that is killed while the disk is full is restarted; the full disk is reported once', async () => {
    symlinkSync('/dev/full', `${data.stateFile}.new`)
    await assert.rejects(start({}).ended, { code: 'ENOSPC' })
    unlinkSync(`${data.stateFile}.new`)

    const { ended, stop, kill, serves, isThere, said } = start({})
    await serves(1)
    symlinkSync('/dev/full', `${data.stateFile}.new`)
    kill()
    await serves(2)
    assert.equal(isThere(), true)
    stop()
    await ended
    assert.equal(isThere(), false)
    assert.equal(said.filter((line) => /cannot write .*ENOSPC/.test(line)).length, 1)
    unlinkSync(`${data.stateFile}.new`)
  })

  test('a joined runner that is asked to stop ends without an error, and `alcove status` shows no error', async () => {
    const { ended, isThere } = start({ stop: true })
    await ended
    assert.equal(isThere(), false)
    assert.deepEqual(await statusLater(), { running: false, programs: [] })
  })
})
