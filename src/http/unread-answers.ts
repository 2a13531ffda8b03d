// Limits large answers, which the server keeps in memory until the client has read them. Each has a time limit, and all of
// them together have a memory limit.
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Shares } from './shares.ts'

/** Answers with fewer bytes than this are not limited, because the kernel accepts them immediately. */
const largeBytes = 64 * 1024

/**
 * If a client reads nothing for this many milliseconds, the server cuts the answer off. The time is long, because the server
 * notices reading only about once per megabyte.
 */
const longestIdleMs = 300_000

/** Cuts an answer off when its client has read none of the waiting bytes for `idleMs`. This takes at most twice `idleMs`. */
export const cutOffIdle = (answer: ServerResponse, idleMs = longestIdleMs): void => {
  answer.setTimeout(idleMs, () => {
    if (answer.writableLength > 0) answer.destroy()
  })
}

type Bounds = {
  /** Returns the owner that the bytes of an answer count for. */
  ownerOf: (request: FastifyRequest) => string
  /**
   * Maximum number of bytes of all large answers. If there are more, the oldest answer of the owner with the most bytes is
   * cut off.
   */
  mostBytes?: number
  idleMs?: number
}

/** Limits the answers that wait in memory. A stream is not counted, because it pauses while its client does not read. */
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
