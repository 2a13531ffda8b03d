// How a gate passes a call to the gate of another machine: as HTTP over TLS in which both show their certificates
// (hosts.ts). A toolbox call keeps its path below `/toolbox/{sandboxId}`. `GET /port/{sandboxId}/{port}` with an upgrade
// becomes a plain connection to a port inside the sandbox. The called gate relies on the ticket alone.

/** The headers that a gate adds to a call. Callers cannot set them. */
export const peerHeaders = {
  /** Control's ticket for the call (ticket.ts). */
  ticket: 'alcove-ticket',
  /** `yes` if the sandbox is started by what control said. The called gate then waits a moment for its runner. */
  isStarted: 'alcove-started',
  /** `leastGeneration` of control's answer. */
  leastGeneration: 'alcove-least-generation',
} as const

const words = new Set<string>(Object.values(peerHeaders))

/** Whether only gates may set a header. `name`: in small letters. */
export const isOfPeers = (name: string): boolean => words.has(name)

/** The protocol of the upgrade to a plain connection. */
export const portProtocol = 'alcove-port'

/** Header of the answer to a gate whose certificate is refused. The value says why. */
export const refusedHeader = 'alcove-refused'

/** Header of the answer that refuses a connection to a port: the code of the problem, or `nothing_listens`. */
export const problemHeader = 'alcove-problem'

/** The path by which a gate asks whether another gate is alive. */
export const alivePath = '/alive'
