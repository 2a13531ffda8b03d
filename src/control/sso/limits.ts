// Signing in needs no credential, so it is limited by where it comes from.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { Problem } from '#src/problems.ts'
import { createAddressKeys } from '../rate-limits/address-key.ts'

const windowSeconds = 60
const mostPerWindow = 60

export type Limit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export const createLimit = (): Limit => {
  const addressKey = createAddressKeys()
  const limiter = new RateLimiterMemory({ points: mostPerWindow, duration: windowSeconds })
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
