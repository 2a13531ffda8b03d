import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { startToolbox } from '../testing/toolbox.ts'
import { plainWordsOf } from './plain.ts'

suite('commands that need no shell', () => {
  test('`plainWordsOf` returns the words of a command that has no shell syntax', () => {
    assert.deepEqual(plainWordsOf(' ls  -la\t/tmp ', {}), ['ls', '-la', '/tmp'])
    assert.deepEqual(plainWordsOf('./a/b --x=1,2 c@d:e+f%', {}), ['./a/b', '--x=1,2', 'c@d:e+f%'])
    for (const command of ['true', 'python3 -V', '/bin/echo a']) assert.ok(plainWordsOf(command, {}), command)
  })

  test('a command gets a shell only for shell syntax, a shell builtin, or a variable such as BASH_ENV', () => {
    const meant = [
      'a;b',
      'a&',
      'a|b',
      'a>b',
      'a<b',
      '$a',
      '`a`',
      '"a"',
      "'a'",
      'a\\b',
      'a *',
      'a ?',
      'a [b]',
      'a {b,c}',
      '~/a',
    ]
    const others = ['a b~', 'a #b', '! a', '(a)', 'a\nb', 'a\rb', 'x=1 a', 'x=1', 'a ä', '']
    for (const command of [...meant, ...others]) assert.equal(plainWordsOf(command, {}), undefined, command)
    for (const word of ['cd /', 'exit 3', 'echo a', 'if a', 'time a', 'exec a', '. a', ': a', 'wait'])
      assert.equal(plainWordsOf(word, {}), undefined, word)
    for (const name of ['BASH_ENV', 'BASH_FUNC_ls%%', 'BASHOPTS', 'SHELLOPTS', 'ENV'])
      assert.equal(plainWordsOf('ls', { [name]: '' }), undefined, name)
  })

  test('a command that runs without a shell has the same exit code and error message as in bash', async () => {
    await using box = await startToolbox()
    const make = (name: string, text: string, mode = 0o755) => {
      writeFileSync(join(box.directory, name), text)
      chmodSync(join(box.directory, name), mode)
      return join(box.directory, name)
    }
    mkdirSync(join(box.directory, 'directory'))
    const commands = [
      'ls -d /',
      'ls /does/not/exist',
      'no-such-program -x',
      join(box.directory, 'directory'),
      make('seven', '#!/bin/sh\necho "$0 $1"; exit 7'),
      make('no-first-line', '[[ -n $BASH_VERSION ]] && echo in bash: "$@"'),
      make('not-executable', '#!/bin/sh\n', 0o644),
      make('no-interpreter', '#!/does/not/exist\n'),
      `${make('hears-nothing', '#!/bin/sh\ncat; echo end')} a b`,
      'env -u _ -u SHLVL env -u _',
    ]
    for (const command of commands) {
      const plain = await box.post('/process/execute', { command, cwd: box.directory, envs: { GIVEN: '1' } })
      // Quotes around a word force the use of a shell, and do not change the meaning of the command.
      const [program, ...words] = command.split(' ')
      const quoted = [`'${program}'`, ...words].join(' ')
      const shell = await box.post('/process/execute', { command: quoted, cwd: box.directory, envs: { GIVEN: '1' } })
      const sorted = ({ result, ...rest }: { result: string }) => ({ ...rest, result: result.split('\n').sort() })
      assert.deepEqual(sorted(plain.body), sorted(shell.body), command)
    }
  })

  test('if signal N kills a command without a shell, its exit code is 128 + N, and no line says "Killed"', async () => {
    await using box = await startToolbox()
    const killed = join(box.directory, 'killed')
    writeFileSync(killed, '#!/bin/sh\nkill -9 $$', { mode: 0o755 })
    const resultOf = async (command: string) => (await box.post('/process/execute', { command })).body
    assert.deepEqual(await resultOf(killed), { exitCode: 137, result: '' })
    const { exitCode, result } = await resultOf(`'${killed}'`)
    assert.equal(exitCode, 137)
    assert.match(result, /Killed/)
  })

  test('a command that needs no shell runs even if the image has no shell', async () => {
    await using box = await startToolbox()
    symlinkSync('/bin/ls', join(box.directory, 'ls'))
    const { body } = await box.post('/process/execute', { command: 'ls -d /', envs: { PATH: box.directory } })
    assert.deepEqual(body, { exitCode: 0, result: '/\n' })
  })
})
