// Limits large answers. An answer stays in our memory until its reader has taken it, and a reader may never take it.
// Each large answer has a time limit, and all of them together have a memory limit.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Shares } from './shares.ts'

/** Answers below this size are not counted, because the kernel takes them immediately. */
const largeBytes = 64 * 1024

/**
 * Longest time without a read, in milliseconds. The time is long, because a socket shows the progress of a slow reader
 * only in steps of a megabyte or more.
 */
const longestIdleMs = 300_000

/**
 * Cuts off an answer whose reader takes no byte for `idleMs`, although bytes are waiting. The cut may come up to
 * `idleMs` later.
 */
export const cutOffIdle = (answer: ServerResponse, idleMs = longestIdleMs): void => {
  answer.setTimeout(idleMs, () => {
    if (answer.writableLength > 0) answer.destroy()
  })
}

type Bounds = {
  /** Returns the owner that the bytes of an answer count for. */
  ownerOf: (request: FastifyRequest) => string
  /**
   * Most bytes of all large answers together. Above this limit, the owner with the most bytes loses its oldest answer.
   */
  mostBytes?: number
  idleMs?: number
}

/** Limits answers that wait for their readers. A stream needs no limit: it pauses until its reader takes the bytes. */
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
