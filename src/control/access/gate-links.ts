import type { WebSocket } from 'ws'
import type { AccessAhead } from '#src/wire/access.ts'
import { localGateId } from '#src/wire/hosts.ts'
import type { RunningParts } from '../running.ts'
import type { Tickets } from './tickets.ts'

/** The open WebSockets from gates of this server to this control process. */
export class GateLinks {
  readonly #sockets = new Map<WebSocket, string>()

  /**
   * Adds the WebSocket of a gate, and removes it when it closes. `gateId`: the id of the gate, as its certificate says.
   */
  add(socket: WebSocket, gateId = localGateId): void {
    this.#sockets.set(socket, gateId)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => socket.terminate())
  }

  get size(): number {
    return this.#sockets.size
  }

  /**
   * Sends a message to the gates that callers are likely to use: those of the server's machine and of the sandbox's host. Skips a
   * gate with unsent data. That gate asks control when the call arrives.
   */
  tell(message: AccessAhead, gateOfHost = localGateId): void {
    const text = JSON.stringify(message)
    for (const [socket, id] of this.#sockets)
      if ((id === localGateId || id === gateOfHost) && socket.readyState === socket.OPEN && socket.bufferedAmount === 0)
        socket.send(text)
  }

  closeAll(): void {
    for (const socket of this.#sockets.keys()) socket.close(1001, 'control is stopping')
  }
}

export type GateParts = RunningParts & { gates: GateLinks; tickets: Tickets }
