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
  /** Wraps a guard. Before the guard, checks the failed calls of the address. After it, counts the call of the organization. */
  around: (guard: Guard) => Guard
  /**
   * Counts a call without a route in endpoints.ts, by the caller's address. Throws if the address is over the limit.
   */
  anonymous: (request: FastifyRequest) => Promise<void>
  /**
   * Runs `find`, which finds the owner of a credential. Used for calls that do not pass the guard, for example event
   * sockets. If `find` returns undefined, a failure of the caller's address is counted.
   */
  tryCredential: <Holder>(
    request: FastifyRequest,
    find: () => Promise<Holder | undefined>,
  ) => Promise<Holder | undefined>
  /** Adds the headers that tell a client its limits and its remaining calls. Call this before the answer is sent. */
  tell: (request: FastifyRequest, reply: FastifyReply) => void
}

/** The names of the rate limit headers. CORS must allow scripts in web pages to read them. */
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
  // The counters have no limits themselves, because rates differ by organization. `judge` compares a count with its
  // rate.
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

  /** Throws 429 for an address with too many failures. Called before the credential is checked. */
  const checkFailures = async (request: FastifyRequest) => {
    if (failures === undefined) return
    const counted = await counters.get('failed-auth')!.get(addressKey(request.ip))
    if (counted !== null && counted.consumedPoints >= failures.limit) {
      judge(request, 'failed-auth', failures, counted, true)
    }
  }

  /**
   * Counts a failure of the caller's address. Never throws, so that the call with the wrong credential gets a 401 and
   * not a 429.
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
      // A gate, a runner or an SSH gateway is not refused for the failures of users behind the same address. For
      // `member or ssh-gateway`, only the guard can tell whether an SSH gateway or a user calls.
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
        // A call that the guard refused for a missing permission is counted too.
        await countCaller(request, route)
      }
    },
    tell: (request, reply) => {
      const headers = told.get(request)
      if (headers !== undefined) reply.headers(headers)
    },
  }
}
