// Answers calls from pages of other origins (CORS). Pages of every origin may call: the credential is in a header and not
// in a cookie, so a page can use only credentials that it has.
import type { IncomingMessage } from 'node:http'

const exposed = 'Content-Disposition, Content-Length, Content-Range, X-Alcove-Truncated, X-Request-Id'
const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'

export const corsHeaders = ({ headers: { origin } }: IncomingMessage): string[] =>
  origin === undefined
    ? []
    : ['Access-Control-Allow-Origin', origin, 'Access-Control-Expose-Headers', exposed, 'Vary', 'Origin']

export const preflightHeaders = (request: IncomingMessage): string[] => {
  const asked = request.headers['access-control-request-headers']
  return [
    ...corsHeaders(request),
    'Access-Control-Allow-Methods',
    methods,
    ...(asked === undefined ? [] : ['Access-Control-Allow-Headers', asked]),
    'Access-Control-Max-Age',
    '86400',
    'Content-Length',
    '0',
  ]
}
