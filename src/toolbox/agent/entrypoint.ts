// Starts the entrypoint of the image or snapshot as a job: a session needs a shell, and the image may have none.

import { isRefused, type Jobs, StartFailed } from './agent.ts'
import { type EnvironmentSource, environmentOf } from './environment.ts'
import { keptOutputBytes } from './kept-output.ts'
import { plainWord } from './plain.ts'

export const entrypointJob = 'entrypoint'
/** Maximum length in bytes of the command line that callers see. Job metadata and lists of sessions have this maximum. */
const shownBytes = 4096

type Starting = EnvironmentSource & { agent: { jobs: Pick<Jobs, 'spawn'> } }

/** Returns the arguments as a command line, with quotes around arguments that a shell would otherwise split or expand. */
const lineOf = (argv: readonly string[]): string =>
  argv.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')

const shownLineOf = (argv: readonly string[]): Buffer => {
  const line = Buffer.from(lineOf(argv))
  if (line.length <= shownBytes) return line
  const more = '…'
  const cut = new TextDecoder().decode(line.subarray(0, shownBytes - Buffer.byteLength(more)), { stream: true })
  return Buffer.from(cut + more)
}

/** Starts the entrypoint once per start of the sandbox. The job's own log reports a failed start. */
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
