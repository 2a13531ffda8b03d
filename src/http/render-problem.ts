// Turns errors into the bodies of answers. No other file does this. For an unexpected error, the answer shows nothing of
// the error itself.
import { STATUS_CODES } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Problem } from '#src/problems.ts'

/** Turns an error that Fastify throws (bad JSON, a body that is too large, an unknown content type) into a Problem. */
export const asProblem = (error: unknown): Problem => {
  if (error instanceof Problem) return error
  const { code, statusCode } = (error ?? {}) as { code?: string; statusCode?: number }
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY' || code === 'FST_ERR_CTP_EMPTY_JSON_BODY') {
    return new Problem('invalid_body', undefined, { cause: error })
  }
  if (statusCode === 413) return new Problem('too_large', undefined, { cause: error })
  if (statusCode === 415) return new Problem('media_type', undefined, { cause: error })
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new Problem('bad_request', undefined, { cause: error })
  }
  return new Problem('internal', undefined, { cause: error })
}

/** Returns the path for the body of an error. Clients of a toolbox expect the path inside the toolbox, without `/toolbox/{id}`. */
const pathOf = (url: string, source: string): string => {
  const [path = ''] = url.split('?')
  return (source === 'DAYTONA_DAEMON' ? path.replace(/^\/toolbox\/[^/]+/, '') : path) || '/'
}

/**
 * Returns the body of a refusal. Daytona's public SDK chooses the class of its error by `source`, and by fields that
 * toolboxes add.
 */
export const renderProblem = (problem: Problem, request: Pick<FastifyRequest, 'url' | 'method'>, source: string) => ({
  path: pathOf(request.url, source),
  timestamp: new Date().toISOString(),
  statusCode: problem.status,
  error: STATUS_CODES[problem.status] ?? 'Error',
  message: problem.message,
  code: problem.wireCode,
  source,
  method: request.method,
  ...problem.fields,
})
