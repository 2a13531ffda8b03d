// Starts the command that the sandbox's image or snapshot names: a job, because an image need not have a shell that a session could be.

import { isRefused, type Jobs, StartFailed } from './agent.ts'
import { type EnvironmentSource, environmentOf } from './environment.ts'
import { keptOutputBytes } from './kept-output.ts'
import { plainWord } from './plain.ts'

export const entrypointJob = 'entrypoint'
/** Bytes of a command line that are shown: what the agent remembers of a job, and what lists show of any command. */
const shownBytes = 4096

type Starting = EnvironmentSource & { agent: { jobs: Pick<Jobs, 'spawn'> } }

/** The command line as a person would type it. */
const lineOf = (argv: readonly string[]): string =>
  argv.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')

const shownLineOf = (argv: readonly string[]): Buffer => {
  const line = Buffer.from(lineOf(argv))
  if (line.length <= shownBytes) return line
  const more = '…'
  const cut = new TextDecoder().decode(line.subarray(0, shownBytes - Buffer.byteLength(more)), { stream: true })
  return Buffer.from(cut + more)
}

/** Asked for again while the sandbox runs, it does nothing. What cannot be started says so in its own log. */
export const startEntrypoint = async (sandbox: Starting, argv: readonly string[], cwd?: string): Promise<void> => {
  try {
    await sandbox.agent.jobs.spawn({
      id: entrypointJob,
      argv,
      env: environmentOf(sandbox),
      user: sandbox.assignment.user,
      ...(cwd === undefined ? {} : { cwd }),
      ringBytes: keptOutputBytes,
      keepFailed: true,
      keepBeginning: true,
      metadata: shownLineOf(argv),
    })
  } catch (error) {
    if (!(isRefused(error, 'EEXIST') || error instanceof StartFailed)) throw error
  }
}
