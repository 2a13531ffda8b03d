// Ends programs of an `up` that was killed. These programs may still use ports and files that the new programs need.
import { isAlive, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import type { DataDirectory } from './data-directory.ts'
import { findUpState } from './state-file.ts'

/** Ends the programs that the last state file lists. Programs other than PostgreSQL have nothing to save, so they are killed. */
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
