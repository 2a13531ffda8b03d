// A whole answer stays in our memory until its reader has taken it, and a reader may take nothing. So the large ones have
// bounds: of time, for each, and of memory, for all of them together.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Shares } from './shares.ts'

/** Smaller ones are not counted: the kernel takes them at once. */
const largeBytes = 64 * 1024

/** A socket tells of a slow reader in steps of a megabyte and more. */
const longestIdleMs = 300_000

/** Ends an answer, stream or not, of which its reader takes nothing for so long, at most twice as long, while it could. */
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

/** Bounds answers that wait for their readers. Streams are not bounded: they wait themselves. */
export const boundUnread = (server: FastifyInstance, { ownerOf, mostBytes, idleMs }: Bounds): void => {
  const unread = new Shares<ServerResponse>(mostBytes)

  const follow = (answer: ServerResponse, request: FastifyRequest, bytes: number) => {
    unread.put(answer, ownerOf(request), bytes)
    answer.once('close', () => unread.remove(answer))
    unread.fit((giving) => giving.destroy(), answer)
    cutOffIdle(answer, idleMs)
  }

  server.addHook('onSend', (request, { raw: answer }, payload, done) => {
    const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.byteLength(payload) : 0
    if (bytes >= largeBytes) follow(answer, request, bytes)
    done(null, payload)
  })
}
