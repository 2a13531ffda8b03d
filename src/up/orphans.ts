// What is left of an `up` that was killed: programs that did not notice yet, and would be in the way of the next ones.
import { isAlive, signalProcess, waitUntilGone } from '#src/kit/process-identity.ts'
import type { DataDirectory } from './data-directory.ts'
import { findUpState } from './state-file.ts'

/** Ends the programs that the last `up` wrote down. PostgreSQL ends in order if it can; the others hold no state. */
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
