// Counts calls before and after the guard, and answers 429 above the limit. All control processes share the counters.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Bucket, buckets, type RateLimits } from '#src/control/settings/rates.ts'
import type { Rate } from '#src/kit/rate.ts'
import { Problem } from '#src/problems.ts'
import { callerOf } from '../auth/guard.ts'
import type { ControlRoute } from '../auth/route.ts'
import { createAddressKeys } from './address-key.ts'
import { bucketOf, isProbe, rateFor } from './buckets.ts'
import type { Counted, SharedCounters } from './shared-counters.ts'

type Guard = (request: FastifyRequest, route: ControlRoute) => Promise<object>

export type Limits = {
  /** Returns a guard that counts calls before and after the given guard. */
  around: (guard: Guard) => Guard
  /** Counts a call that has no route in the table, by its address. Throws if the address is over the limit. */
  anonymous: (request: FastifyRequest) => Promise<void>
  /**
   * Finds the user of a credential for a call that does not pass the guard, for example an event socket. If `find`
   * returns no user, the call counts as a failure.
   */
  tryCredential: <Holder>(
    request: FastifyRequest,
    find: () => Promise<Holder | undefined>,
  ) => Promise<Holder | undefined>
  /** Adds the headers that say how many calls are left. Call this before the answer is sent. */
  tell: (request: FastifyRequest, reply: FastifyReply) => void
}

/** The names of the rate limit headers, which CORS exposes to pages. */
export const limitHeaders = buckets.flatMap((bucket) => [
  `X-RateLimit-Limit-${bucket}`,
  `X-RateLimit-Remaining-${bucket}`,
  `X-RateLimit-Reset-${bucket}`,
  `Retry-After-${bucket}`,
])

const headersOf = (bucket: Bucket, { limit }: Rate, { consumedPoints, msBeforeNext }: Counted, isOver: boolean) => {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  return {
    [`X-RateLimit-Limit-${bucket}`]: limit,
    [`X-RateLimit-Remaining-${bucket}`]: Math.max(0, limit - consumedPoints),
    [`X-RateLimit-Reset-${bucket}`]: seconds,
    ...(isOver ? { [`Retry-After-${bucket}`]: seconds, 'Retry-After': seconds } : {}),
  }
}

export const createLimits = (standard: RateLimits, shared: SharedCounters): Limits => {
  // Rates differ by organization. So the counters only count, and `judge` compares a count with its rate.
  const counters = new Map(buckets.map((bucket) => [bucket, shared.counter(bucket, 60)]))
  const addressKey = createAddressKeys(shared.secret)
  const told = new WeakMap<FastifyRequest, Record<string, number>>()

  const judge = (request: FastifyRequest, bucket: Bucket, rate: Rate, counted: Counted, isOver: boolean) => {
    told.set(request, { ...told.get(request), ...headersOf(bucket, rate, counted, isOver) })
    if (!isOver) return
    const { limit, ttlSeconds } = rate
    throw new Problem('rate_limited', `More than ${limit} calls in ${ttlSeconds} s (${bucket}).`)
  }

  const count = async (request: FastifyRequest, bucket: Bucket, rate: Rate | undefined, key: string) => {
    if (rate === undefined) return
    const counted = await counters.get(bucket)!.add(key, rate.ttlSeconds)
    judge(request, bucket, rate, counted, counted.consumedPoints > rate.limit)
  }

  const failures = standard['failed-auth']

  /** Refuses an address with too many failures, before its credential is checked. */
  const checkFailures = async (request: FastifyRequest) => {
    if (failures === undefined) return
    const counted = await counters.get('failed-auth')!.get(addressKey(request.ip))
    if (counted !== null && counted.consumedPoints >= failures.limit) {
      judge(request, 'failed-auth', failures, counted, true)
    }
  }

  /**
   * Counts a failure of the caller's address. Never throws: the call with the wrong credential must get its own 401.
   */
  const countFailure = async (request: FastifyRequest) => {
    if (failures === undefined) return
    const counted = await counters.get('failed-auth')!.add(addressKey(request.ip), failures.ttlSeconds)
    judge(request, 'failed-auth', failures, counted, false)
  }

  const countCaller = async (request: FastifyRequest, route: ControlRoute) => {
    const caller = callerOf(request)
    if (caller === undefined) return
    const bucket = bucketOf(route)
    const { organization, user } = caller
    await count(request, bucket, rateFor(bucket, standard, organization), organization?.id ?? user.id)
  }

  const anonymous = (request: FastifyRequest) => count(request, 'anonymous', standard.anonymous, addressKey(request.ip))

  return {
    anonymous,
    tryCredential: async (request, find) => {
      await checkFailures(request)
      const holder = await find()
      if (holder === undefined) await countFailure(request)
      return holder
    },
    around: (guard) => async (request, route) => {
      if (route.needs === 'public') {
        if (!isProbe(route)) await anonymous(request)
        return await guard(request, route)
      }
      // Alcove's own programs are not refused because of failures by others at their address. Only the guard can tell an SSH
      // gateway from a person.
      const mayBeGateway = route.needs === 'member or ssh-gateway'
      if (route.needs !== 'proxy' && route.needs !== 'runner' && !mayBeGateway) await checkFailures(request)
      try {
        const context = await guard(request, route)
        if (mayBeGateway && callerOf(request) !== undefined) await checkFailures(request)
        return context
      } catch (error) {
        if (mayBeGateway) await checkFailures(request)
        if (error instanceof Problem && error.status === 401) await countFailure(request)
        throw error
      } finally {
        // A call without the needed permission still counts.
        await countCaller(request, route)
      }
    },
    tell: (request, reply) => {
      const headers = told.get(request)
      if (headers !== undefined) reply.headers(headers)
    },
  }
}
