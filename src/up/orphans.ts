// Ends programs of an `up` that was killed. They may still run, and would block the new programs.
import { isAlive, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import type { DataDirectory } from './data-directory.ts'
import { findUpState } from './state-file.ts'

/**
 * Ends the programs in the last state file. PostgreSQL gets time to shut down cleanly. Other programs hold no state and
 * are killed.
 */
export const endOrphans = async ({ stateFile }: Pick<DataDirectory, 'stateFile'>): Promise<void> => {
  const programs = findUpState(stateFile)?.programs ?? []
  await Promise.all(
    programs
      .filter((program) => isAlive(program))
      .map(async (program) => {
        if (program.name === 'postgres') {
          signalProcess(program, 'SIGINT')
          if (await waitUntilGone(program, 5000)) return
          signalProcess(program, 'SIGQUIT')
        } else {
          signalProcess(program, 'SIGKILL')
        }
        await waitUntilGone(program, 5000)
      }),
  )
}
