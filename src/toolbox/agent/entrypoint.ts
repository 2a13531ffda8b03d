// Starts the command that the image or snapshot names. It is a job and no session, because an image need not have a shell.

import { isRefused, type Jobs, StartFailed } from './agent.ts'
import { type EnvironmentSource, environmentOf } from './environment.ts'
import { keptOutputBytes } from './kept-output.ts'
import { plainWord } from './plain.ts'

export const entrypointJob = 'entrypoint'
/**
 * Maximum length of a shown command line, in bytes: the agent keeps this much metadata of a job, and lists show as much of a
 * command.
 */
const shownBytes = 4096

type Starting = EnvironmentSource & { agent: { jobs: Pick<Jobs, 'spawn'> } }

/** The command line as a person would type it, with quotes where they are needed. */
const lineOf = (argv: readonly string[]): string =>
  argv.map((word) => (plainWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')

const shownLineOf = (argv: readonly string[]): Buffer => {
  const line = Buffer.from(lineOf(argv))
  if (line.length <= shownBytes) return line
  const more = '…'
  const cut = new TextDecoder().decode(line.subarray(0, shownBytes - Buffer.byteLength(more)), { stream: true })
  return Buffer.from(cut + more)
}

/**
 * Does nothing if the entrypoint was already started since the sandbox started. A failed start is reported in the job's own log.
 */
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
