// Limits sign-in calls by address, even if the operator sets no limits, because signing in needs no credential.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { Problem } from '#src/problems.ts'
import { createAddressKeys } from './address-key.ts'

const windowSeconds = 60

/** A function that throws `rate_limited` if the address of the request is over its limit. */
type AddressLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export const createAddressLimit = (mostPerMinute: number): AddressLimit => {
  const addressKey = createAddressKeys()
  const limiter = new RateLimiterMemory({ points: mostPerMinute, duration: windowSeconds })
  return async (request, reply) => {
    try {
      await limiter.consume(addressKey(request.ip))
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal
      reply.header('retry-after', String(Math.ceil(refusal.msBeforeNext / 1000)))
      throw new Problem('rate_limited')
    }
  }
}
