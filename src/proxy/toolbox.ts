// The toolbox of a sandbox as a destination: on its runner, under the sandbox's id, without who calls.
import type { IncomingMessage } from 'node:http'
import { isTracing, placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import { Problem } from '#src/problems.ts'
import { type Access, generationHeader, generationHeaders, sdkVersionHeader } from '#src/wire/access.ts'
import { corsHeaders } from './cors.ts'
import type { Destination } from './destination.ts'
import { crossing, framing, upgrading } from './headers.ts'
import type { Runners } from './runners.ts'

const notForToolboxes = new Set(['authorization', 'cookie', 'expect', 'host', 'content-length', generationHeader])

/** Where we are in the caller's trace is said in their place. */
const ofTrace = new Set(['traceparent', 'tracestate'])

const isForToolbox = (name: string) =>
  !notForToolboxes.has(name) &&
  (!name.startsWith('x-daytona-') || name === sdkVersionHeader) &&
  !name.startsWith('x-service-') &&
  !(isTracing() && ofTrace.has(name))

export const toolboxOf = (runners: Runners, access: Access, rest: string, request: IncomingMessage): Destination => ({
  path: `/toolbox/${encodeURIComponent(access.sandboxId)}${rest || '/'}`,
  send: (outgoing) => runners.request(access.runnerAddress, outgoing),
  inward: (isUpgrade) => [
    'Host',
    'toolbox',
    ...crossing(request, isForToolbox),
    ...Object.entries({ ...generationHeaders(access), ...placeHeaders() }).flat(),
    ...(isUpgrade ? upgrading(request) : framing(request)),
  ],
  // CORS is the proxy's to say, so a sandbox cannot loosen it.
  outward: (answer) => [...crossing(answer, (name) => !name.startsWith('access-control-')), ...corsHeaders(request)],
  failure: (cause) => new Problem('bad_gateway', undefined, { cause }),
})
