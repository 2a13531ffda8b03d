// Connections to servers inside sandboxes. The agent connects inside and passes bytes on; what a hostile server says is parsed here,
// without privileges.
import { type ClientRequest, request } from 'node:http'
import type { Duplex } from 'node:stream'
import { Problem } from '#src/problems.ts'
import { type Agent, AgentRefused, agentAt } from '#src/toolbox/agent/agent.ts'
import type { Outgoing } from './destination.ts'
import type { Door, Entering } from './door.ts'
import { NothingListens, NotStarted } from './hindrance.ts'

/** The connections of one sandbox are bounded, so that none takes the descriptors of all; the agent has as many again for everything else. */
const mostConnections = 512
/** A sandbox that is paused or busy takes connections late. */
const dialMs = 20_000
/** How large the head of an answer from inside a sandbox may be. */
const answerHeadBytes = 64 * 1024
/** How many answers 1xx one call may have. */
const mostInterim = 64

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
  readonly #open = new Map<string, number>()

  constructor(door: Door, dialled: (socketPath: string) => Pick<Agent, 'dial'> = agentAt) {
    this.#door = door
    this.#agentAt = dialled
  }

  /** A request that has not been sent yet, over a connection of its own: many such servers serve one at a time. */
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
    // Nobody is told of them, so nobody's pace bounds how many there are.
    let interim = 0
    outgoing.on('information', () => {
      interim += 1
      if (interim > mostInterim) outgoing.destroy(new Error('too many interim answers'))
    })
    return outgoing
  }

  /** A connection to this port. */
  async dial(entering: Entering, port: number): Promise<Duplex> {
    const { sandbox } = await this.#door.enter(entering, { port })
    if (sandbox === undefined) throw new Problem('bad_gateway', undefined, { cause: 'the sandbox is not here' })
    if (sandbox.status !== 'started') throw new NotStarted()
    const { id, socketPath } = sandbox
    const open = this.#open.get(id) ?? 0
    if (open >= mostConnections) throw tooMany()
    this.#open.set(id, open + 1)
    try {
      const socket = await this.#dialWithin(socketPath, port)
      // When the server closes, we close: HTTP has nothing more to say to it.
      socket.allowHalfOpen = false
      if (socket.destroyed) throw new NotStarted()
      socket.once('close', () => this.#close(id))
      return socket
    } catch (error) {
      this.#close(id)
      throw problemOf(error, port)
    }
  }

  #close(id: string) {
    const open = (this.#open.get(id) ?? 1) - 1
    if (open > 0) this.#open.set(id, open)
    else this.#open.delete(id)
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
