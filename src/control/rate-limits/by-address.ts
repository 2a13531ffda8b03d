// Limits sign-in calls per client IP address, even if the operator sets no rate limits.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#src/problems.ts'
import { createAddressKeys } from './address-key.ts'
import type { SharedCounters } from './shared-counters.ts'

const windowSeconds = 60

/** Throws `rate_limited` if the client IP address of the request has exceeded its limit. */
type AddressLimit = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

export const createAddressLimit = (counters: SharedCounters, name: string, mostPerMinute: number): AddressLimit => {
  const addressKey = createAddressKeys(counters.secret)
  const counter = counters.counter(name, windowSeconds)
  return async (request, reply) => {
    const { consumedPoints, msBeforeNext } = await counter.add(addressKey(request.ip))
    if (consumedPoints <= mostPerMinute) return
    reply.header('retry-after', String(Math.ceil(msBeforeNext / 1000)))
    throw new Problem('rate_limited')
  }
}
