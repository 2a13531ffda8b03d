import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Command } from 'commander'
import { addCommands } from '../commands.ts'
import { completionFor } from '../complete/completion.ts'
import { exitCodes, Failure } from '../failure.ts'
import { readPairs } from '../sandboxes/create.ts'
import { readForward } from './port.ts'

const isUsage = (error: unknown) => error instanceof Failure && error.exitCode === exitCodes.usage

suite('arguments of the command line', () => {
  test('`alcove port` takes PORT or PORT:LOCAL, and rejects any other text as a wrong command line', () => {
    assert.deepEqual(readForward('80'), { remote: 80, local: 80 })
    assert.deepEqual(readForward('80:8080'), { remote: 80, local: 8080 })
    assert.deepEqual(readForward('65535:0'), { remote: 65_535, local: 0 })
    for (const text of ['', '0', '65536', '80:65536', '80:', ':80', '-1', '80x', '8 0'])
      assert.throws(() => readForward(text), isUsage, text)
  })

  test('`readPairs` splits NAME=VALUE at the first `=`; without `=`, the environment gives the value', () => {
    assert.deepEqual(readPairs(['A=b=c', 'E=', 'MINE'], { MINE: 'x' }), { A: 'b=c', E: '', MINE: 'x' })
    for (const pair of ['=x', '', 'OTHER']) assert.throws(() => readPairs([pair], {}), isUsage, pair)
  })

  test('the completion script for each shell contains every command and every option', () => {
    const program = new Command('alcove')
    addCommands(program, { env: {}, connect: () => Promise.reject(new Error('not asked')) })
    const names = program.commands.flatMap((command) => [
      command.name(),
      ...command.commands.map((below) => below.name()),
      ...command.options.map(({ long }) => long ?? ''),
    ])
    assert.ok(names.length > 40)
    for (const shell of ['bash', 'zsh', 'fish'] as const) {
      const script = completionFor(program, shell)
      assert.deepEqual(
        names.filter((name) => !script.includes(name)),
        [],
      )
    }
  })
})
