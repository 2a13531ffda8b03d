// Connections from the proxy to the runners' toolbox servers, kept open between calls.
import { Agent, type ClientRequest, type RequestOptions, request } from 'node:http'
import type { NetConnectOpts, Socket } from 'node:net'
import { Inflow } from '#src/kit/inflow.ts'
import { giveBack } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import { type Access, generationHeaders } from '#src/wire/access.ts'
import { dialRefusals } from '#src/wire/dial.ts'
import type { Outgoing } from './destination.ts'
import { NothingListens, NotStarted } from './hindrance.ts'

/** Into which sandbox, and where. */
type Inside = Pick<Access, 'sandboxId' | 'runnerAddress' | 'leastGeneration'>

const connectMs = 3000
/** A sandbox that is paused or busy takes connections late. */
const dialMs = 20_000
/** Of an answer from inside a sandbox. */
const answerHeadBytes = 64 * 1024
/** As many answers 1xx to one call. */
const mostInterim = 64

/** `unix:/path` or `http://host:port`, as control gives it. */
const placeOf = (address: string): RequestOptions => {
  if (address.startsWith('unix:/')) return { socketPath: address.slice('unix:'.length) }
  if (address.startsWith('http://') && URL.canParse(address)) {
    const { hostname, port } = new URL(address)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port || 80 }
  }
  throw new Problem('bad_gateway', undefined, { cause: 'a runner address that the proxy cannot read' })
}

const dialProblem = (status: number, port: number): Problem => {
  if (status === dialRefusals.nothingListens) {
    return new NothingListens(port)
  }
  if (status === dialRefusals.notStarted) return new NotStarted()
  if (status === dialRefusals.busy) return new Problem('unavailable', 'This sandbox has too many open connections.')
  return new Problem('bad_gateway', undefined, { cause: `the runner answered ${status}` })
}

/** What was read is copied by the parser, which takes it first; the first bytes behind an upgrade are not. */
const clearAway = (outgoing: ClientRequest, socket: Socket) => {
  socket.on('data', giveBack)
  // Before the next request takes this connection and puts its own parser behind this one.
  outgoing.once('close', () => socket.off('data', giveBack))
}

/** Of connections whose bytes can be passed on without a parser, once they are known to be only that. */
class InflowAgent extends Agent {
  override createConnection = (options: object): Socket => Inflow.to(options as NetConnectOpts)
}

export class Runners implements Disposable {
  // Idle connections close before the runner's own 90 s, so that none is used in the moment it goes away. How many are in use is
  // bounded where calls are let in: here one would wait, unanswered, for those of all others to end.
  readonly #agent = new InflowAgent({ keepAlive: true, maxFreeSockets: 256, timeout: 60_000 })
  /** Where a connection serves one request. Node asks a request's own `createConnection` only where no agent is named. */
  readonly #single = new InflowAgent()

  /** A request that has not been sent yet; an upgrade gets a connection of its own. */
  request(address: string, { method, path, headers, isUpgrade = false }: Outgoing): ClientRequest {
    const outgoing = request({
      ...placeOf(address),
      method,
      path,
      headers,
      agent: isUpgrade ? this.#single : this.#agent,
      setDefaultHeaders: false,
    })
    outgoing.once('socket', (socket) => {
      socket.setNoDelay(true)
      if (isUpgrade) (socket as Inflow).hearOut()
      else clearAway(outgoing, socket)
      if (!socket.connecting) return
      const timer = setTimeout(() => outgoing.destroy(new Error('the runner did not accept in time')), connectMs)
      const settle = () => clearTimeout(timer)
      socket.once('connect', settle).once('close', settle)
    })
    return outgoing
  }

  /** The same for a server inside a sandbox, over a connection of its own: many such servers serve one at a time. */
  requestInside(access: Inside, port: number, { method, path, headers }: Outgoing): ClientRequest {
    const outgoing = request({
      method,
      path,
      headers,
      createConnection: (_options, done) => {
        this.#dial(access, port).then(
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

  /** A connection to a port inside a sandbox (wire/dial.ts). */
  #dial(access: Inside, port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const asking = request({
        ...placeOf(access.runnerAddress),
        method: 'CONNECT',
        path: `${access.sandboxId}:${port}`,
        headers: generationHeaders(access),
        agent: this.#single,
        timeout: dialMs,
      })
      asking.once('timeout', () => asking.destroy(new Error('the runner did not connect in time')))
      asking.on('error', (cause) => reject(new Problem('bad_gateway', undefined, { cause })))
      asking.once('connect', ({ statusCode = 0 }, socket, head) => {
        // From here on it is a connection like any other, and may be silent for as long as it likes.
        socket.setTimeout(0)
        if (statusCode === 200) {
          if (head.length > 0) socket.unshift(head)
          return resolve((socket as Inflow).hearOut())
        }
        socket.destroy()
        reject(dialProblem(statusCode, port))
      })
      asking.end()
    })
  }

  [Symbol.dispose]() {
    this.#agent.destroy()
    this.#single.destroy()
  }
}
