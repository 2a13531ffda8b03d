// The only place that turns an error into an answer. An unexpected error becomes `internal` with a fixed sentence.
import { STATUS_CODES } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { Problem } from '#src/problems.ts'

/** Converts an error that Fastify throws (bad JSON, a body too large, an unknown content type) to one of our problems. */
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

/**
 * The path in the error body. A toolbox leaves out the prefix `/toolbox/{id}`, because its clients know only the path
 * after it.
 */
const pathOf = (url: string, source: string): string => {
  const [path = ''] = url.split('?')
  return (source === 'DAYTONA_DAEMON' ? path.replace(/^\/toolbox\/[^/]+/, '') : path) || '/'
}

/** The body of every refusal. The public SDK picks its error class by `source` and by fields that toolboxes add. */
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
