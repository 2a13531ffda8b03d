// The command `alcove port`: forwards a port of this machine to a port inside a sandbox, for any protocol over TCP.
//
// Each connection uses a WebSocket at `{toolbox}/ssh/port`. Binary messages contain its bytes. The text `eof` means that the sender
// will send no more bytes.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { WebSocket } from 'ws'
import { cleanLine } from '../clean.ts'
import type { Work } from '../commands.ts'
import { exitCodes, Failure } from '../failure.ts'
import { note, printJson } from '../print/print.ts'
import { getSandbox, type Sandbox, toolboxOf } from '../sandboxes/sandbox.ts'
import { openSocket } from './open-socket.ts'
import { makeToken } from './ssh-token.ts'

const host = '127.0.0.1'
/** Maximum number of connections at the same time, for each port. */
const mostConnections = 256
const aliveMs = 15_000

type Forward = { remote: number; local: number }

/** Reads `PORT` or `PORT:LOCAL`. The local port 0 stands for any free port. */
export const readForward = (text: string): Forward => {
  const [, first, second] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? []
  const remote = Number(first)
  const local = second === undefined ? remote : Number(second)
  if (first === undefined || remote < 1 || remote > 65_535 || local > 65_535)
    throw new Failure(`"${cleanLine(text)}" is not of the form PORT or PORT:LOCAL.`, exitCodes.usage)
  return { remote, local }
}

/** Makes an SSH token for the connections of `alcove port`, and makes a new token when this token does not work any more. */
class Tokens {
  readonly #work: Work
  readonly #sandbox: Sandbox
  #made: ReturnType<typeof makeToken>

  constructor(work: Work, sandbox: Sandbox) {
    this.#work = work
    this.#sandbox = sandbox
    this.#made = makeToken(work.api, sandbox)
  }

  async open(port: number): Promise<WebSocket> {
    const url = `${toolboxOf(this.#sandbox)}/ssh/port?port=${port}`
    const made = this.#made
    const signal = this.#work.interruption.signal
    const dial = async () =>
      await openSocket(url, { headers: { authorization: `Bearer ${(await this.#made).token}` }, signal })
    try {
      return await dial()
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 401) throw error
      if (this.#made === made) this.#made = makeToken(this.#work.api, this.#sandbox)
      return await dial()
    }
  }

  async revoke(): Promise<void> {
    await this.#made.then(({ revoke }) => revoke()).catch(() => {})
  }

  async ready(): Promise<void> {
    await this.#made
  }
}

/** Copies bytes in both directions. Each direction may end alone. While one side is slow, nothing is read from the other side. */
const join = (local: Socket, socket: WebSocket): void => {
  local.on('data', (data: Buffer) => {
    local.pause()
    socket.send(data, () => local.resume())
  })
  local.once('end', () => socket.readyState === socket.OPEN && socket.send('eof'))
  local.once('close', () => socket.terminate())
  socket.on('message', (data: Buffer, isBinary) => {
    if (!isBinary) return void local.end()
    if (local.write(data)) return
    socket.pause()
    local.once('drain', () => socket.resume())
  })
  socket.once('close', (code) => (code === 1000 ? local.end() : local.destroy()))
  local.resume()
  socket.resume()
}

const listen = async (server: Server, port: number): Promise<number> => {
  server.maxConnections = mostConnections
  server.listen(port, host)
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new Failure(
      `Port ${port} of this machine cannot be used: ${error.code ?? error.message}.`,
      exitCodes.localFile,
    )
  })
  return (server.address() as AddressInfo).port
}

export const port = async (
  work: Work,
  idOrName: string,
  wanted: readonly string[],
  { json }: { json?: boolean },
): Promise<void> => {
  const forwards = wanted.map(readForward)
  const sandbox = await getSandbox(work.api, idOrName)
  const tokens = new Tokens(work, sandbox)
  const { signal } = work.interruption
  const connections = new Set<Socket>()
  const servers: Server[] = []
  let lastNote = ''
  const serve = async (local: Socket, remote: number) => {
    connections.add(local)
    local.on('error', () => {})
    local.once('close', () => connections.delete(local))
    local.setKeepAlive(true, aliveMs)
    try {
      join(local, await tokens.open(remote))
      lastNote = ''
    } catch (error) {
      local.destroy()
      // A browser may connect many times while no server listens. So an error is shown only if it differs from the last shown
      // error.
      if (!signal.aborted && (error as Error).message !== lastNote) note((error as Error).message)
      lastNote = (error as Error).message
    }
  }
  try {
    await tokens.ready()
    for (const forward of forwards) {
      const server = createServer(
        { allowHalfOpen: true, pauseOnConnect: true },
        (local) => void serve(local, forward.remote),
      )
      servers.push(server)
      const local = await listen(server, forward.local)
      if (json) await printJson({ host, port: local, sandboxId: sandbox.id, sandboxPort: forward.remote })
      else
        note(`${host}:${local} forwards to port ${forward.remote} of ${cleanLine(sandbox.name)}. Press Ctrl-C to stop.`)
    }
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    throw signal.reason
  } finally {
    for (const server of servers) server.close()
    for (const local of connections) local.destroy()
    await tokens.revoke()
  }
}
