// Refusals for a caller whose credentials were accepted. The causes: the sandbox is not started, or no server listens
// on the port.
import { Problem } from '#src/problems.ts'

/** Refusal for a sandbox that is not started. `state`: the sandbox's state, if the gate knows it. */
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
