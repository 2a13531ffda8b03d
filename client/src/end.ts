import { exitCodes, Failure } from './failure.ts'
import { Interrupted } from './interruption.ts'
import { note } from './print/print.ts'

/** Returns the exit code for an error after it was shown. A Failure is shown as its sentence. Undefined for any other error. */
export const showFailure = (error: unknown): number | undefined => {
  if (error instanceof Interrupted) return error.exitCode
  if (!(error instanceof Failure)) return undefined
  note(error.message)
  return error.exitCode
}

const flushed = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    if (stream.writableNeedDrain || stream.writableLength > 0) stream.write('', () => resolve())
    else resolve()
  })

/** Waits until everything was written that standard output and standard error still hold. */
export const flushOutput = async (): Promise<void> => {
  await Promise.all([flushed(process.stdout), flushed(process.stderr)])
}

/** Runs the program and ends the process. An error that is no Failure is a mistake of Alcove, and is shown with its stack trace. */
export const endWith = async (run: () => Promise<unknown>): Promise<never> => {
  try {
    await run()
  } catch (error) {
    const code = showFailure(error)
    if (code === undefined) console.error(error)
    process.exitCode = code ?? exitCodes.serverError
  }
  await flushOutput()
  process.exit()
}
