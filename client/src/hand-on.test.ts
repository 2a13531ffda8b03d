import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Command, type CommanderError } from 'commander'
import { addCommands } from './commands.ts'

/** Returns the error message for a wrong command line. */
const said = async (...words: string[]): Promise<string> => {
  const program = new Command('alcove')
  const connect = async () => {
    throw new Error('it asks a server')
  }
  addCommands(program, { env: {}, connect })
  const quiet = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: () => {} })
    for (const below of command.commands) quiet(below)
  }
  quiet(program)
  return await program.parseAsync(words, { from: 'user' }).then(
    () => 'nothing',
    ({ message }: CommanderError) => message,
  )
}

suite('words after the name of a group of commands, such as `sandbox`', () => {
  test('the error for a misspelled command is “unknown command” and not “too many arguments”', async () => {
    for (const words of [
      ['sandbox', 'lsit'],
      ['sandboxes', 'stpo', 'box'],
      ['snapshot', 'box'],
      ['key', 'x', '--json'],
    ])
      assert.equal(await said(...words), `error: unknown command '${words[1]}'`)
  })

  test('`alcove` accepts a command group such as `sandbox` without a subcommand, and aliases such as `rm`', async () => {
    const given = [['sandbox'], ['sandbox', '--label', 'a=b'], ['sandboxes', 'rm', 'box'], ['sandbox', 'resume', 'box']]
    for (const words of given) assert.equal(await said(...words), 'it asks a server', words.join(' '))
  })
})
