// The open links of runners to this process. If a runner has no link or reads slowly, a message to it may be lost,
// which is not an error. The runner's next list, or the next sweep, brings the same assignment.
import type { WebSocket } from 'ws'
import { placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import type { Assignment, ToRunner } from '#src/wire/runner-link.ts'

/**
 * Maximum unread bytes on a runner's link. Above it, the link is closed. The runner opens a new link and reads its
 * whole list again.
 */
const mostBufferedBytes = 8 * 1024 * 1024

export class RunnerLinks {
  readonly #sockets = new Map<string, WebSocket>()
  readonly #addresses = new Map<string, string>()

  /** Adds a link. The newest link of a runner counts; an older link is closed. */
  add(runnerId: string, socket: WebSocket): void {
    const older = this.#sockets.get(runnerId)
    this.#sockets.set(runnerId, socket)
    older?.close(4000, 'this runner has opened another link')
  }

  remove(runnerId: string, socket: WebSocket): void {
    if (this.#sockets.get(runnerId) !== socket) return
    this.#sockets.delete(runnerId)
    this.#addresses.delete(runnerId)
  }

  /** Stores the address at which the runner serves toolboxes, as the runner reported it on its link. */
  noteAddress(runnerId: string, address: string): void {
    if (this.#sockets.has(runnerId)) this.#addresses.set(runnerId, address)
  }

  /** The address of a runner, if it is linked to this process. */
  addressOf(runnerId: string | null): string | undefined {
    return runnerId === null ? undefined : this.#addresses.get(runnerId)
  }

  /** Closes the link of a runner that was taken out of service. */
  drop(runnerId: string): void {
    this.#sockets.get(runnerId)?.close(4001, 'this runner was taken out of service')
  }

  has(runnerId: string): boolean {
    return this.#sockets.has(runnerId)
  }

  ids(): string[] {
    return [...this.#sockets.keys()]
  }

  push(runnerId: string, assignment: Assignment): void {
    this.say(runnerId, { type: 'assign', assignment, ...placeHeaders() })
  }

  say(runnerId: string, message: ToRunner): void {
    const socket = this.#sockets.get(runnerId)
    if (socket === undefined || socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > mostBufferedBytes) socket.terminate()
    else socket.send(JSON.stringify(message))
  }

  closeAll(): void {
    for (const socket of this.#sockets.values()) socket.close(1001, 'control is stopping')
    this.#sockets.clear()
  }
}
