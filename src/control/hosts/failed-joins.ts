// Limits, by address, how often machines may try to join with a wrong token. Correct tokens are not counted.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createAddressKeys } from '#src/control/rate-limits/address-key.ts'
import type { SharedCounters } from '#src/control/rate-limits/shared-counters.ts'
import { Problem } from '#src/problems.ts'

/** Number of wrong tokens that are allowed per quarter of an hour from one IPv4 address or IPv6 /64. */
export const mostFailures = 20
const windowSeconds = 15 * 60

/** Runs `join`, and counts wrong tokens. Throws 429 if the caller's address has sent `mostFailures` wrong tokens. */
export type FailedJoins = <T>(request: FastifyRequest, reply: FastifyReply, join: () => Promise<T>) => Promise<T>

const isWrongToken = (error: unknown) => error instanceof Problem && (error.status === 401 || error.status === 403)

export const limitFailedJoins = (counters: SharedCounters): FailedJoins => {
  const addressKey = createAddressKeys(counters.secret)
  const failures = counters.counter('failed joins', windowSeconds)
  return async (request, reply, join) => {
    const key = addressKey(request.ip)
    const counted = await failures.get(key)
    if (counted !== null && counted.consumedPoints >= mostFailures) {
      reply.header('retry-after', String(Math.ceil(counted.msBeforeNext / 1000)))
      throw new Problem('rate_limited', 'Too many wrong tokens from this address.')
    }
    try {
      return await join()
    } catch (error) {
      if (isWrongToken(error)) await failures.add(key)
      throw error
    }
  }
}
