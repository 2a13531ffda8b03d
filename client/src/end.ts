import { setImmediate as errorsOfStreams } from 'node:timers/promises'
import { exitCodes, Failure } from './failure.ts'
import { Interrupted, lostOutputCode } from './interruption.ts'
import { note } from './print/print.ts'

/** Shows the message of a Failure and returns its exit code. Returns undefined for any other error, without showing it. */
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

/**
 * Watches for output that cannot be written. Call the returned function at the end of the program: it waits for all output, and
 * reports lost output by a message and the exit code.
 */
export const watchOutput = (): (() => Promise<void>) => {
  let lost: NodeJS.ErrnoException | undefined
  process.stdout.on('error', (error) => {
    lost ??= error
  })
  process.stderr.on('error', () => {})
  return async () => {
    await Promise.all([flushed(process.stdout), flushed(process.stderr)])
    await errorsOfStreams()
    if (lost === undefined) return
    // EPIPE means that the reader of the output has ended, as with `| head`. The user needs no message about that.
    if (lost.code !== 'EPIPE') note(`The output could not be written: ${lost.code ?? lost.message}.`)
    process.exitCode ||= lostOutputCode(lost)
  }
}

/** Runs the program and ends the process. An error that is not a Failure is a bug, and is shown with its stack trace. */
export const endWith = async (run: () => Promise<unknown>): Promise<never> => {
  const noticeLoss = watchOutput()
  try {
    await run()
  } catch (error) {
    const code = showFailure(error)
    if (code === undefined) console.error(error)
    process.exitCode = code ?? exitCodes.serverError
  }
  await noticeLoss()
  process.exit()
}
