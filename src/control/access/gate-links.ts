import type { WebSocket } from 'ws'
import type { AccessAhead } from '#src/wire/access.ts'
import type { RunningParts } from '../running.ts'
import type { Tickets } from './tickets.ts'

/** The open links of this server's own gates to this process. */
export class GateLinks {
  readonly #sockets = new Set<WebSocket>()

  add(socket: WebSocket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.terminate())
  }

  get size(): number {
    return this.#sockets.size
  }

  /** Sends a message to every gate, except those that have not yet taken the messages before it. */
  tell(message: AccessAhead): void {
    const text = JSON.stringify(message)
    for (const socket of this.#sockets)
      if (socket.readyState === socket.OPEN && socket.bufferedAmount === 0) socket.send(text)
  }

  closeAll(): void {
    for (const socket of this.#sockets) socket.close(1001, 'control is stopping')
  }
}

/** The parts of control, together with the parts that are needed to answer gates: their links, and the tickets. */
export type GateParts = RunningParts & { gates: GateLinks; tickets: Tickets }
