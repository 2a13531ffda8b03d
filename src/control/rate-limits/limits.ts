// Rate limits: answers 429 to calls above a limit. Wrong credentials and calls to public paths count for the IP address. Other
// calls of users count for the organization. All control processes share the counters.

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
  /**
   * Wraps a guard. Before the guard runs, refuses an IP address with too many wrong credentials. After the guard has run,
   * counts the call for the caller's organization.
   */
  around: (guard: Guard) => Guard
  /** Counts a call to a path that is not in endpoints.ts. Throws if the caller's IP address has exceeded its limit. */
  anonymous: (request: FastifyRequest) => Promise<void>
  /**
   * Looks up a credential with `find`, for calls that do not pass the guard, for example event sockets. If `find` returns
   * undefined, counts a wrong credential for the IP address.
   */
  tryCredential: <Holder>(
    request: FastifyRequest,
    find: () => Promise<Holder | undefined>,
  ) => Promise<Holder | undefined>
  /** Adds the headers that show a client its limits and its remaining calls. Call this before the answer is sent. */
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
  // These counters have no limit. The count is compared with a limit later, because each organization may have a rate of its own.
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

  /**
   * Throws 429 if the client IP address has sent too many wrong credentials. Called before the guard checks the credential. On
   * routes for `member or ssh-gateway`, called after the guard. Not called on routes for `proxy` or `runner`.
   */
  const checkFailures = async (request: FastifyRequest) => {
    if (failures === undefined) return
    const counted = await counters.get('failed-auth')!.get(addressKey(request.ip))
    if (counted !== null && counted.consumedPoints >= failures.limit) {
      judge(request, 'failed-auth', failures, counted, true)
    }
  }

  /** Counts a wrong credential for the caller's IP address. Never throws, so the call gets 401 and not 429. */
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
      // Wrong credentials of users must not shut out gates, runners and SSH gateways behind the same address. For `member or
      // ssh-gateway`, only the guard finds out whether the caller is a member or an SSH gateway.
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
        // Counts the call even if the guard has refused it because a permission is missing.
        await countCaller(request, route)
      }
    },
    tell: (request, reply) => {
      const headers = told.get(request)
      if (headers !== undefined) reply.headers(headers)
    },
  }
}
