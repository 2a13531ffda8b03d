// Connections to servers inside sandboxes, through the agent. Answers of hostile servers are parsed here, without privileges.
import { type ClientRequest, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import { type Agent, AgentRefused, agentAt } from '#src/toolbox/agent/agent.ts'
import type { Outgoing } from './destination.ts'
import type { Door, Entering } from './door.ts'
import { NothingListens, NotStarted } from './hindrance.ts'
import { withFewInterim } from './interim.ts'

/**
 * Maximum number of connections per sandbox, so that no sandbox uses up the gate's file descriptors. The agent allows twice
 * as many.
 */
const mostConnections = 512
/**
 * Timeout in milliseconds for connecting to a port in a sandbox. The timeout is long, because a busy sandbox may accept a
 * connection late.
 */
const dialMs = 20_000
/** Maximum size, in bytes, of the head of an answer from a server in a sandbox. */
const answerHeadBytes = 64 * 1024
const tooMany = () => new Problem('unavailable', 'This sandbox has too many open connections.')

const problemOf = (error: unknown, port: number): Problem => {
  if (error instanceof Problem) return error
  if (!(error instanceof AgentRefused)) return new NotStarted()
  if (error.stage === 'connect') return new NothingListens(port)
  return error.stage === 'ending' ? new NotStarted() : tooMany()
}

export class Inside {
  readonly #door: Door
  readonly #agentAt: (socketPath: string) => Pick<Agent, 'dial'>
  readonly #elsewhere: (entering: Entering, port: number) => Promise<Duplex> | undefined
  readonly #open = new Budget({ each: mostConnections })

  /** `elsewhere` connects to a sandbox on another host, through that host's gate. Returns undefined for a sandbox on this host. */
  constructor(
    door: Door,
    dialled: (socketPath: string) => Pick<Agent, 'dial'> = agentAt,
    elsewhere: (entering: Entering, port: number) => Promise<Duplex> | undefined = () => undefined,
  ) {
    this.#door = door
    this.#elsewhere = elsewhere
    this.#agentAt = dialled
  }

  /**
   * Creates an HTTP request to a server in a sandbox. The caller must end the request. Every request has its own connection: many
   * servers serve one connection at a time, and a connection that is kept open would block all others.
   */
  request(entering: Entering, port: number, { method, path, headers }: Outgoing): ClientRequest {
    const outgoing = request({
      method,
      path,
      headers,
      createConnection: (_options, done) => {
        this.dial(entering, port).then(
          (socket) => done(null, socket),
          (error) => done(error, undefined as never),
        )
        return undefined
      },
      setDefaultHeaders: false,
      maxHeaderSize: answerHeadBytes,
    })
    return withFewInterim(outgoing)
  }

  /** Opens a connection to a port in a sandbox. */
  async dial(entering: Entering, port: number): Promise<Duplex> {
    const connection = this.#elsewhere(entering, port)
    if (connection !== undefined) return await connection
    const { sandbox } = await this.#door.enter(entering, { port })
    if (sandbox === undefined) throw new Problem('bad_gateway', undefined, { cause: 'the sandbox is not here' })
    if (sandbox.status !== 'started') throw new NotStarted()
    const { id, socketPath } = sandbox
    if (!this.#open.take(id)) throw tooMany()
    try {
      const socket = await this.#dialWithin(socketPath, port)
      // When the server in the sandbox stops sending, the whole connection is closed: the gate cannot see whether the server
      // still reads.
      socket.allowHalfOpen = false
      if (socket.destroyed) throw new NotStarted()
      socket.once('close', () => this.#open.give(id))
      return socket
    } catch (error) {
      this.#open.give(id)
      throw problemOf(error, port)
    }
  }

  async #dialWithin(socketPath: string, port: number): Promise<Duplex> {
    const dialling = this.#agentAt(socketPath).dial(port)
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      dialling.then((socket) => socket.destroy()).catch(() => {})
      late.reject(new Problem('bad_gateway', undefined, { cause: 'the agent did not connect in time' }))
    }, dialMs)
    return await Promise.race([dialling, late.promise]).finally(() => clearTimeout(timer))
  }
}
