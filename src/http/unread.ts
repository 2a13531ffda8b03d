// A whole answer stays in our memory until its reader has taken it, and a reader may take nothing. So the large ones have
// bounds: of time, for each, and of memory, for all of them together.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance } from 'fastify'

/** Smaller ones are not counted: the kernel takes them at once. */
const largeBytes = 64 * 1024

type Bounds = {
  /** All large answers together; beyond it those that have waited for longest are cut off. */
  mostBytes?: number
  /** One of which nothing is taken for so long is cut off; a socket tells of a slow reader in steps of a megabyte and more. */
  idleMs?: number
}

/** Of streams it bounds nothing: they wait for their readers themselves. */
export const boundUnread = (
  server: FastifyInstance,
  { mostBytes = 256 * 1024 ** 2, idleMs = 300_000 }: Bounds = {},
) => {
  /** Oldest first. */
  const unread = new Map<ServerResponse, number>()
  let held = 0

  const forget = (answer: ServerResponse) => {
    held -= unread.get(answer) ?? 0
    unread.delete(answer)
  }

  const makeRoom = (bytes: number) => {
    for (const answer of unread.keys()) {
      if (held + bytes <= mostBytes) return
      answer.destroy()
      forget(answer)
    }
  }

  server.addHook('onSend', async (_request, { raw: answer }, payload) => {
    const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0
    if (bytes < largeBytes) return
    makeRoom(bytes)
    unread.set(answer, bytes)
    held += bytes
    answer.once('close', () => forget(answer))
    answer.setTimeout(idleMs, () => answer.destroy())
  })
}
