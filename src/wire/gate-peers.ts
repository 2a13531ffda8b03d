// A gate passes a call to another machine's gate as HTTP over TLS with certificates on both sides (hosts.ts). A toolbox call keeps
// its path below `/toolbox/{sandboxId}`. `GET /port/{sandboxId}/{port}` with an upgrade becomes a plain connection to a port in the
// sandbox. The called gate checks only the ticket and does not ask control.

/** Headers that a gate adds to a call to another gate. Callers of the API cannot set them. */
export const peerHeaders = {
  /** Control's ticket for the call (ticket.ts). */
  ticket: 'alcove-ticket',
  /**
   * `yes` if control has said that the sandbox is started. The called gate then waits briefly until its runner reports the sandbox.
   */
  isStarted: 'alcove-started',
  /**
   * Minimum generation of the sandbox for the call: the called gate waits until its runner reports this generation or a
   * later one (access.ts).
   */
  leastGeneration: 'alcove-least-generation',
} as const

const words = new Set<string>(Object.values(peerHeaders))

/** Whether only gates may set this header. `name`: in lower case. */
export const isOfPeers = (name: string): boolean => words.has(name)

/** Protocol in the header `Upgrade` of a call that becomes a plain connection. */
export const portProtocol = 'alcove-port'

/** Header of an answer with which the called gate refuses the certificate of the calling gate. The header's value is the reason. */
export const refusedHeader = 'alcove-refused'

/**
 * Header of the answer that refuses a connection to a port. The header's value is the code of the problem, or `nothing_listens`.
 */
export const problemHeader = 'alcove-problem'

/** The path by which a gate asks whether another gate is alive. */
export const alivePath = '/alive'
