// The commands `alcove run` and `alcove exec`.
import type { Work } from '../commands.ts'
import { exitCodes, Failure } from '../failure.ts'
import { type CreateOptions, readPairs } from '../sandboxes/create.ts'
import { getSandbox } from '../sandboxes/sandbox.ts'
import { withSandbox } from '../sandboxes/temporary.ts'
import { runForwarding } from './forwarding.ts'

/** Makes a sandbox, runs a command in it and deletes it. Returns the exit code of the command. */
export const run = (work: Work, argv: readonly string[], options: CreateOptions & { keep?: boolean }) =>
  withSandbox(work, options, (sandbox) => runForwarding(work, sandbox, { argv }))

/** Runs a command in a sandbox. Returns the exit code of the command. */
export const exec = async (
  work: Work,
  idOrName: string,
  argv: readonly string[],
  options: { env?: string[] },
): Promise<number> => {
  const env = readPairs(options.env, work.env)
  // The parser leaves `--` among the words after the name of the sandbox, so it is removed here.
  const words = argv[0] === '--' ? argv.slice(1) : argv
  if (words.length === 0) throw new Failure('Give a command to run after the name of the sandbox.', exitCodes.usage)
  return await runForwarding(work, await getSandbox(work.api, idOrName), { argv: words, env })
}
