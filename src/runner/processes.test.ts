import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { isAlive, parseNamespacePids, parseStartTime } from './processes.ts'

suite('processes', () => {
  test('the start time is found whatever the process calls itself', () => {
    const rest = Array.from({ length: 30 }, (_, index) => `f${index + 3}`).join(' ')
    assert.equal(parseStartTime(`7 (a) b (c)) ${rest}`), 'f22')
  })

  test('the numbers in each namespace, the host’s first', () => {
    assert.deepEqual(parseNamespacePids('Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t1\n'), [4711, 12, 1])
    assert.deepEqual(parseNamespacePids('Name:\tx\n'), [])
  })

  test('alive is the same process, not the same number', async () => {
    const child = spawn('sleep', ['1000'])
    const pid = child.pid as number
    const startTime = parseStartTime(readFileSync(`/proc/${pid}/stat`, 'utf8')) as string
    assert.equal(isAlive({ pid, startTime }), true)
    assert.equal(isAlive({ pid, startTime: '1' }), false)
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(isAlive({ pid, startTime }), false)
  })
})
