import type { FastifyReply } from 'fastify'

/** A signal that is aborted when the caller leaves before the answer. */
export const hangUpOf = ({ raw }: Pick<FastifyReply, 'raw'>): AbortSignal => {
  const controller = new AbortController()
  if (raw.destroyed) controller.abort()
  raw.once('close', () => controller.abort())
  return controller.signal
}
