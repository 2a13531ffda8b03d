// A whole answer stays in our memory until its reader has taken it, and a reader may take nothing. So the large ones have
// bounds: of time, for each, and of memory, for all of them together.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/** Smaller ones are not counted: the kernel takes them at once. */
const largeBytes = 64 * 1024

/** A socket tells of a slow reader in steps of a megabyte and more. */
const longestIdleMs = 300_000

/** Ends an answer, stream or not, of which its reader takes nothing for so long while there is something to take. */
export const cutOffIdle = (answer: ServerResponse, idleMs = longestIdleMs): void => {
  answer.setTimeout(idleMs, () => {
    if (answer.writableLength > 0) answer.destroy()
  })
}

type Bounds = {
  /** Whoever the answer is for. */
  ownerOf: (request: FastifyRequest) => string
  /** All large answers together; beyond it, who has most there gives way, with what has waited for longest. */
  mostBytes?: number
  idleMs?: number
}

/** Of streams it bounds nothing: they wait for their readers themselves. */
export const boundUnread = (
  server: FastifyInstance,
  { ownerOf, mostBytes = 256 * 1024 ** 2, idleMs }: Bounds,
): void => {
  /** Oldest first. */
  const unread = new Map<ServerResponse, { owner: string; bytes: number }>()
  let held = 0

  const forget = (answer: ServerResponse) => {
    held -= unread.get(answer)?.bytes ?? 0
    unread.delete(answer)
  }

  /** Of those that have something here; what comes counts as well. */
  const heaviest = (coming: string, bytes: number): string | undefined => {
    const bytesOf = new Map<string, number>()
    for (const each of unread.values()) bytesOf.set(each.owner, (bytesOf.get(each.owner) ?? 0) + each.bytes)
    const before = bytesOf.get(coming)
    if (before !== undefined) bytesOf.set(coming, before + bytes)
    return [...bytesOf].reduce<[string?, number?]>((most, each) => (each[1] > (most[1] ?? 0) ? each : most), [])[0]
  }

  const makeRoom = (owner: string, bytes: number) => {
    while (unread.size > 0 && held + bytes > mostBytes) {
      const giving = heaviest(owner, bytes)
      const [answer] = [...unread].find(([, each]) => each.owner === giving)!
      answer.destroy()
      forget(answer)
    }
  }

  server.addHook('onSend', async (request, { raw: answer }, payload) => {
    const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0
    if (bytes < largeBytes) return
    const owner = ownerOf(request)
    makeRoom(owner, bytes)
    unread.set(answer, { owner, bytes })
    held += bytes
    answer.once('close', () => forget(answer))
    cutOffIdle(answer, idleMs)
  })
}
