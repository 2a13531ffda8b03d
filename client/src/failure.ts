// Errors with a message for the user and an exit code of the program.

/**
 * Exit codes for this program's own errors, from sysexits.h. client/README.md explains them. If a command in a sandbox fails, this
 * program exits with the command's code.
 */
export const exitCodes = {
  /** The command line is wrong. */
  usage: 64,
  /** The server refused the request because it is invalid or not possible in the present state. */
  refused: 65,
  notFound: 66,
  /** The server or the sandbox cannot be reached, or the connection was lost. */
  unreachable: 69,
  serverError: 70,
  /** A file of this machine could not be read or written. */
  localFile: 74,
  /** Something took too long, or the server has too much to do. */
  tryAgain: 75,
  /** The user is not signed in, or does not have the permission. */
  notAllowed: 77,
} as const

/** An error of which the user sees only the message, without a stack trace. */
export class Failure extends Error {
  readonly exitCode: number
  /** The HTTP status with which the server refused a call. Undefined if the error is not a refused call. */
  readonly status: number | undefined

  constructor(sentence: string, exitCode: number, options?: ErrorOptions & { status?: number }) {
    super(sentence, options)
    this.exitCode = exitCode
    this.status = options?.status
  }
}

const ofStatus: Record<number, number> = {
  401: exitCodes.notAllowed,
  403: exitCodes.notAllowed,
  404: exitCodes.notFound,
  408: exitCodes.tryAgain,
  429: exitCodes.tryAgain,
  503: exitCodes.tryAgain,
}

/** Returns the exit code for a refusal with this HTTP status. */
export const exitCodeOf = (status: number): number =>
  ofStatus[status] ?? (status >= 500 ? exitCodes.serverError : exitCodes.refused)
