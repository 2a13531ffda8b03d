// The open links of runners to this process. Lost messages do no harm: control sends assignments again when the runner connects,
// and at each sweep.
import type { WebSocket } from 'ws'
import { placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import type { Access } from '#src/wire/access.ts'
import type { GateOfHost } from '#src/wire/hosts.ts'
import type { Assignment, ToRunner } from '#src/wire/runner-link.ts'

/**
 * Maximum unsent bytes of one link. Above this number, control closes the link. The runner connects again and reads all its
 * assignments.
 */
const mostBufferedBytes = 8 * 1024 * 1024

/** The address at which gates reach the sandboxes of a runner, and the gate of the runner's host. */
export type RunnerPlace = Pick<Access, 'runnerAddress' | 'gate'>

/** Returns what other gates need to forward calls to this gate: its id and its address. */
export const placeOfGate = (gate: GateOfHost | undefined): Pick<RunnerPlace, 'gate'> => {
  if (gate === undefined) return {}
  const { id, address } = gate
  return { gate: { id, ...(address !== undefined && { address }) } }
}

export class RunnerLinks {
  readonly #sockets = new Map<string, WebSocket>()
  readonly #places = new Map<string, RunnerPlace>()

  /** Adds the link of a runner. If the runner has an older link to this process, that link is closed. */
  add(runnerId: string, socket: WebSocket): void {
    const older = this.#sockets.get(runnerId)
    this.#sockets.set(runnerId, socket)
    older?.close(4000, 'this runner has opened another link')
  }

  remove(runnerId: string, socket: WebSocket): void {
    if (this.#sockets.get(runnerId) !== socket) return
    this.#sockets.delete(runnerId)
    this.#places.delete(runnerId)
  }

  /** Stores the address and the gate that a runner has reported on its link. */
  notePlace(runnerId: string, place: RunnerPlace): void {
    if (this.#sockets.has(runnerId)) this.#places.set(runnerId, place)
  }

  /** Returns how gates reach the sandboxes of a runner. Undefined without a link on which the runner has reported its address. */
  placeOf(runnerId: string | null): RunnerPlace | undefined {
    return runnerId === null ? undefined : this.#places.get(runnerId)
  }

  /** Closes the link of a runner that was removed. */
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
