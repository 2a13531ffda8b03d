// Connections from the proxy to the runners' toolbox servers, kept open between calls.
import { Agent, type ClientRequest, type RequestOptions, request } from 'node:http'
import { Problem } from '#src/problems.ts'

const connectMs = 3000

/** `unix:/path` or `http://host:port`, as control gives it. */
const placeOf = (address: string): RequestOptions => {
  if (address.startsWith('unix:/')) return { socketPath: address.slice('unix:'.length) }
  if (address.startsWith('http://') && URL.canParse(address)) {
    const { hostname, port } = new URL(address)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port || 80 }
  }
  throw new Problem('bad_gateway', undefined, { cause: 'a runner address that the proxy cannot read' })
}

export class Runners implements Disposable {
  // Idle connections close before the runner's own 90 s, so that none is used in the moment it goes away.
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 2048, maxFreeSockets: 256, timeout: 60_000 })

  /** A request that has not been sent yet; an upgrade gets a connection of its own. */
  request(
    address: string,
    options: { method: string; path: string; headers: string[]; isUpgrade?: boolean },
  ): ClientRequest {
    const { method, path, headers, isUpgrade = false } = options
    const outgoing = request({
      ...placeOf(address),
      method,
      path,
      headers,
      agent: isUpgrade ? false : this.#agent,
      setDefaultHeaders: false,
    })
    outgoing.once('socket', (socket) => {
      socket.setNoDelay(true)
      if (!socket.connecting) return
      const timer = setTimeout(() => outgoing.destroy(new Error('the runner did not accept in time')), connectMs)
      const settle = () => clearTimeout(timer)
      socket.once('connect', settle).once('close', settle)
    })
    return outgoing
  }

  [Symbol.dispose]() {
    this.#agent.destroy()
  }
}
