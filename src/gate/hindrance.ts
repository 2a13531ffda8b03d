// What stands between a caller who may pass and the server inside: the sandbox does not run, or nothing listens there.
import { Problem } from '#src/problems.ts'

/** `state`: of the sandbox, where it is known. */
export class NotStarted extends Problem {
  readonly state: string | undefined

  constructor(state?: string) {
    super(
      'not_started',
      state === undefined ? 'The sandbox is not started.' : `The sandbox is not started: it is ${state}.`,
    )
    this.state = state
  }
}

export class NothingListens extends Problem {
  readonly port: number

  constructor(port: number) {
    super('bad_gateway', `Nothing listens on port ${port} of this sandbox.`)
    this.port = port
  }
}
