import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { identityOf, isAlive, signalProcess, waitUntilGone } from './process-identity.ts'

suite('a process identity', () => {
  test('an identity ends with its process', async () => {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' })
    const identity = identityOf(child.pid as number)
    assert.equal(isAlive(identity), true)
    assert.equal(await waitUntilGone(identity, 0), false)
    assert.equal(signalProcess(identity, 'SIGKILL'), true)
    await once(child, 'exit')
    assert.equal(await waitUntilGone(identity, 5000), true)
  })

  test('an identity never means another process that has the same pid', () => {
    const impostor = { pid: process.pid, startTime: '1' }
    assert.equal(isAlive(impostor), false)
    // If the signal were sent, it would kill this test.
    assert.equal(signalProcess(impostor, 'SIGKILL'), false)
  })

  test('an identity is read correctly for a process whose name has spaces and brackets', async () => {
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
