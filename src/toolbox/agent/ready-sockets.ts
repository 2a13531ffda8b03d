// Connections to recently used agents, opened ahead, so that an operation need not wait. Each connection serves one operation.
// Unused connections are closed after `idleMs`.
import type { Socket } from 'node:net'

type Bounds = {
  /** Maximum number of connections opened ahead to one agent. Default: 2. */
  each?: number
  /**
   * Maximum number of connections opened ahead to all agents. Above this number, the oldest connections are closed. Default: 256.
   */
  all?: number
  idleMs?: number
}

type Ready = { socketPath: string; letGo: () => void }

export class ReadySockets {
  readonly #each: number
  readonly #all: number
  readonly #idleMs: number
  readonly #ready = new Map<Socket, Ready>()
  readonly #byPath = new Map<string, Set<Socket>>()

  constructor({ each = 2, all = 256, idleMs = 15_000 }: Bounds = {}) {
    this.#each = each
    this.#all = all
    this.#idleMs = idleMs
  }

  get size(): number {
    return this.#ready.size
  }

  /** Returns a ready socket. If there is none, returns `undefined`, and the caller opens a socket itself. */
  take(socketPath: string): Socket | undefined {
    for (const socket of this.#byPath.get(socketPath) ?? []) {
      this.#remove(socket)
      if (!socket.destroyed && socket.readableLength === 0) return socket.ref()
      socket.destroy()
    }
    return undefined
  }

  /** Opens sockets to one agent until `#each` are ready. Closes the oldest sockets of all agents beyond `#all`. */
  fill(socketPath: string, open: () => Socket): void {
    while ((this.#byPath.get(socketPath)?.size ?? 0) < this.#each) this.#add(socketPath, open().unref())
    for (const socket of this.#ready.keys()) {
      if (this.#ready.size <= this.#all) return
      this.#remove(socket)
      socket.destroy()
    }
  }

  #add(socketPath: string, socket: Socket) {
    // An agent sends nothing before a request, so any event here means that the agent has ended or refuses connections.
    const giveUp = () => {
      this.#remove(socket)
      socket.destroy()
    }
    const timer = setTimeout(giveUp, this.#idleMs).unref()
    for (const event of ['readable', 'end', 'close']) socket.on(event, giveUp)
    this.#ready.set(socket, {
      socketPath,
      letGo: () => {
        clearTimeout(timer)
        for (const event of ['readable', 'end', 'close']) socket.off(event, giveUp)
      },
    })
    const ofPath = this.#byPath.get(socketPath) ?? new Set()
    this.#byPath.set(socketPath, ofPath.add(socket))
  }

  #remove(socket: Socket) {
    const { socketPath, letGo } = this.#ready.get(socket) ?? {}
    if (socketPath === undefined) return
    letGo?.()
    this.#ready.delete(socket)
    const ofPath = this.#byPath.get(socketPath)
    ofPath?.delete(socket)
    if (ofPath?.size === 0) this.#byPath.delete(socketPath)
  }

  [Symbol.dispose]() {
    for (const socket of this.#ready.keys()) {
      this.#remove(socket)
      socket.destroy()
    }
  }
}
