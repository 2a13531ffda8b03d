import type { FastifyReply } from 'fastify'

/** Returns a signal that is aborted if the caller disconnects before it has received the answer. */
export const hangUpOf = ({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal => {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  raw.once('close', () => controller.abort())
  return controller.signal
}
