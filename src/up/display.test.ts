import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { suite, test } from 'node:test'
import { createDisplay } from './display.ts'

suite('the output of alcove up for people', () => {
  test('without a terminal, `up` prints a step’s progress at its start, at every 25 %, and every 30 s', (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    let text = ''
    const output = new Writable({
      write: (chunk, _encoding, done) => {
        text += chunk
        done()
      },
    })
    const { progress, endProgress } = createDisplay(output)
    const told = () => {
      const since = text
      text = ''
      return since
    }
    for (let percent = 1; percent < 30; percent++) progress({ step: 'unpacking', percent })
    assert.equal(told(), 'unpacking: 1 %\nunpacking: 26 %\n')
    context.mock.timers.tick(30_000)
    context.mock.timers.tick(30_000)
    assert.equal(told(), 'unpacking: 29 %\nunpacking: 29 %\n')
    progress({ step: 'ready', percent: 100 })
    endProgress()
    assert.equal(told(), 'ready: 100 %\n')
    context.mock.timers.tick(60_000)
    assert.equal(told(), '')
  })

  test('if the disk to which the output of `up` goes is full, `up` does not end', () => {
    const script = `
      const { createDisplay } = await import(${JSON.stringify(join(import.meta.dirname, 'display.ts'))})
      createDisplay().say('postgres ended')
      process.stdout.write('Alcove is ready')
      setTimeout(() => process.exit(7), 50)`
    const full = openSync('/dev/full', 'w')
    const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', full, full],
    })
    closeSync(full)
    assert.equal(status, 7)
  })
})
