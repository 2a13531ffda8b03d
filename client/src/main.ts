// The program `alcove` of this package. It is bundled into one file, which needs only Node 20 or newer.
import { Command } from 'commander'
import { addCommands } from './commands.ts'
import { endWith } from './end.ts'
import { exitCodes } from './failure.ts'
import { findAccess, notSignedIn } from './session/access.ts'

declare const ALCOVE_VERSION: string

const program = new Command('alcove')
  .description('Isolated Linux sandboxes of an Alcove server.')
  .version(ALCOVE_VERSION, '--version', 'print the version')
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exitCodes.usage))
  .showHelpAfterError('(alcove --help lists everything)')

addCommands(program, {
  env: process.env,
  connect: async () => {
    const access = findAccess(process.env)
    if (access === undefined) throw notSignedIn()
    return access
  },
})

await endWith(() => program.parseAsync(process.argv))
