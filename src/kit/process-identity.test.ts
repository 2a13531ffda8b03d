import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { identityOf, isAlive, signalProcess, waitUntilGone } from './process-identity.ts'

suite('a process identity (pid and start time)', () => {
  test('`isAlive` returns false for a process that has ended', async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    const identity = identityOf(child.pid as number)
    assert.equal(isAlive(identity), true)
    assert.equal(await waitUntilGone(identity, 0), false)
    assert.equal(signalProcess(identity, 'SIGKILL'), true)
    await once(child, 'exit')
    assert.equal(await waitUntilGone(identity, 5000), true)
  })

  test('a process identity with a wrong start time is never alive, and its pid never gets a signal', () => {
    const impostor = { pid: process.pid, startTime: '1' }
    assert.equal(isAlive(impostor), false)
    // The identity has the pid of this test's process, but another start time. If the signal were sent, this process
    // would be killed.
    assert.equal(signalProcess(impostor, 'SIGKILL'), false)
  })

  test('the start time of a process can be read even if the process’s name has spaces and brackets', async () => {
    const child = spawn(
      process.execPath,
      ['-e', "process.title = 'a) S (b'; console.log(1); setInterval(() => {}, 1000)"],
      {
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    )
    await once(child.stdout, 'data')
    const identity = identityOf(child.pid as number)
    assert.match(identity.startTime, /^\d+$/)
    assert.equal(isAlive(identity), true)
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
})
