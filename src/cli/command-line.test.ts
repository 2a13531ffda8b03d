// Tests that options and arguments reach the right command.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, suite, test } from 'node:test'

const scratch = mkdtempSync(join(tmpdir(), 'alcove-cli-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
const program = resolve(import.meta.dirname, '../../bin/alcove.ts')
/** Runs the command in an empty directory, so that files which it might create by mistake are not left in the checkout. */
const runWith = (env: NodeJS.ProcessEnv, ...words: string[]) =>
  spawnSync(process.execPath, [program, ...words], { encoding: 'utf8', timeout: 60_000, cwd: scratch, env })
const run = (...words: string[]) => runWith(process.env, ...words)
const said = (...words: string[]) => {
  const { status, stderr } = run(...words)
  return [status, stderr.trim().split('\n').at(-1)]
}

suite('the command line', () => {
  test('the option `--data` after the name of a subcommand of `alcove` applies to that subcommand', () => {
    for (const words of [
      ['runner', 'list'],
      ['runner', 'drain', 'second'],
      ['user', 'add', 'ada@example.com'],
    ])
      assert.deepEqual(said(...words, '--data', '/nowhere'), [
        1,
        'alcove: no server is running with the data directory /nowhere',
      ])
  })

  test('`--data` before a subcommand’s name applies, unless there is another `--data` after the name', () => {
    for (const words of [
      ['--data', '/nowhere', 'list'],
      ['--data', '/nowhere', 'remove', '--force', 'second'],
      ['--data', '/elsewhere', 'list', '--data', '/nowhere'],
    ])
      assert.deepEqual(said('runner', ...words), [1, 'alcove: no server is running with the data directory /nowhere'])
  })

  test('`alcove` refuses an option that a subcommand lacks, before and after the subcommand’s name', () => {
    for (const option of ['--join', '--token']) {
      const { status, stderr } = run('runner', option, 'http://127.0.0.1:9', 'list', '--data', '/nowhere')
      assert.equal(status, 1)
      assert.match(stderr, new RegExp(`option '${option} <\\w+>' is not for 'runner list'`))
    }
  })

  test('each command that calls a server accepts `--data` in any position', () => {
    for (const words of [
      ['user', 'add', 'ada@example.com'],
      ['user', 'password', 'ada@example.com'],
      ['sandboxes'],
      ['login'],
    ])
      for (let at = 0; at <= words.length; at++) {
        const command = [...words.slice(0, at), '--data', '/nowhere', ...words.slice(at)]
        assert.deepEqual(
          said(...command),
          [1, 'alcove: no server is running with the data directory /nowhere'],
          command.join(' '),
        )
      }
    assert.match(run('--data', '/nowhere', 'logout').stderr, /option '--data <dir>' is not for 'alcove logout'/)
    assert.match(run('login', '--data', '/nowhere', '--url', 'http://127.0.0.1:9').stderr, /cannot be used with option/)
  })

  test('`alcove --version` prints only the version', () => {
    assert.match(run('--version').stdout, /^\d+\.\d+\.\d+\n$/)
  })

  test('each `alcove` command has an option `--help`, which prints what the command does', () => {
    const names = (text: string) => [...text.matchAll(/^ {2}([a-z]+) [^\n]*/gm)].map(([, name]) => name!)
    const commandsOf = (...words: string[]): string[] => {
      const { status, stdout } = run(...words, '--help')
      assert.equal(status, 0)
      assert.match(stdout, /^Usage: alcove/)
      return names(stdout.split('Commands:')[1] ?? '').filter((name) => name !== 'help')
    }
    const all = commandsOf()
    assert.ok(all.length > 10, all.join())
    for (const name of ['user', 'runner']) for (const below of commandsOf(name)) commandsOf(name, below)
    for (const name of ['up', 'purge', 'login', 'test']) commandsOf(name)
  })

  test('invalid settings are reported in sentences, without a stack trace and without passwords', () => {
    const wrong = { ALCOVE_OVERCOMMIT: 'x', DATABASE_URL: 'postgres://me:hidden@box:none/alcove' }
    const { status, stderr } = runWith({ ...process.env, ...wrong }, 'up', '--data', join(scratch, 'never'))
    assert.equal(status, 1)
    assert.deepEqual(stderr.trim().split('\n'), [
      'alcove: DATABASE_URL must be a URL such as postgres://user:password@host:5432/database',
      'ALCOVE_OVERCOMMIT must be three numbers with commas between, such as 64,8,8',
    ])
  })

  test('each command refuses an empty `--data`, which would otherwise mean the working directory', () => {
    for (const words of [['status'], ['purge', '--yes'], ['up']]) {
      const { status, stderr } = run(...words, '--data', '')
      assert.equal(status, 1)
      assert.match(stderr, /'--data <dir>' argument '' is invalid\. it must not be empty/)
    }
  })
})
