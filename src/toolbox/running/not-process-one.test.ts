import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { wantedToBeFirst } from './not-process-one.ts'

suite('programs that must run as process 1', () => {
  test('`wantedToBeFirst` recognizes programs that must be process 1 by their error messages', () => {
    for (const words of [
      's6-overlay-suexec: fatal: can only run as pid 1\n',
      'init: must be run as PID 1\n',
      'runit: fatal: must be run as process no 1.\n',
      'Trying to run as user instance, but the system has not been booted with systemd.\n',
    ]) {
      assert.equal(wantedToBeFirst(`${'x'.repeat(10_000)}\n${words}`, 100), true, words)
      assert.equal(wantedToBeFirst(words, 0), false, words)
    }
  })

  test('`wantedToBeFirst` is false for programs that only mention process 1 or fail for another reason', () => {
    for (const words of [
      '[WARN  tini (7)] Tini is not running as PID 1 and isn’t registered as a child subreaper.\n',
      'only the owner may do that\nprocess 12 ended\n',
      'must be run as pid 12\n',
      `init: must be run as PID 1\n${'x'.repeat(5000)}`,
      '',
    ])
      assert.equal(wantedToBeFirst(words, 1), false, words)
  })
})
