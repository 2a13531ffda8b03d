// Tests the translation of git's messages (LC_ALL=C) that a test cannot cause on every machine. The endpoints' tests cover the
// other messages.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { problemOf } from './failures.ts'

const failed = (stderr: string, stdout = '') => problemOf({ exitCode: 1, stderr, stdout: Buffer.from(stdout) })

suite('errors of git', () => {
  for (const [code, stderr] of [
    ['file_access_denied', "fatal: could not create work tree dir '/x': Permission denied"],
    ['file_access_denied', 'error: could not lock config file /etc/gitconfig: Permission denied'],
    ['file_access_denied', "fatal: cannot mkdir '/usr/x': Read-only file system"],
    ['git_auth_failed', 'git@host: Permission denied (publickey).\nfatal: Could not read from remote repository.'],
    ['git_transport_failed', 'Host key verification failed.\nfatal: Could not read from remote repository.'],
    ['git_transport_failed', "fatal: unable to access 'https://x/': Could not resolve host: x"],
    ['file_access_denied', "fatal: unable to access '/home/x/.git/config': Permission denied"],
    ['git_transport_failed', 'error: RPC failed; curl 56\nfatal: early EOF'],
    ['unprocessable', 'fatal: write error: No space left on device'],
    ['unprocessable', 'error: unable to write file a: Disk quota exceeded'],
    ['conflict', 'fatal: refusing to merge unrelated histories'],
    ['bad_request', 'fatal: something that nobody has met'],
  ] as const) {
    test(`the error of a git call has the code ${code} if git prints: ${stderr.split('\n')[0]}`, () =>
      assert.equal(failed(stderr).code, code))
  }

  test('the error of a git call has git’s message, shortened, without hints, prefixes and control characters', () => {
    assert.equal(failed('hint: try\nfatal: it \x1b[31mfailed\x1b[0m\x07\r\nhint: again\n').message, 'it failed')
    assert.equal(failed('', 'On branch main\n').message, 'On branch main')
    assert.equal(failed('').message, 'Git ended with exit code 1.')
    const long = failed(`${'x'.repeat(5000)}\nfatal: the end`).message
    assert.ok(long.length <= 1000 && long.endsWith('the end'))
  })

  test('git’s error messages are recognized only at the beginning of a line of git’s output', () => {
    assert.equal(failed(`${"pathspec '".repeat(6000)}\nfatal: No space left on device`).code, 'unprocessable')
    assert.equal(failed(`fatal: ${'x'.repeat(2000)} No space left on device`).code, 'bad_request')
  })

  test('an error message of git that is shortened is never cut in the middle of a character', () => {
    assert.ok(failed(`${'😀'.repeat(501)}x`).message.isWellFormed())
  })
})
