// Passes admitted calls to the toolbox, with the sandbox's id in the path and without the caller's credentials.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { noSandbox, Problem } from '#src/problems.ts'
import { inheritedBy } from '#src/toolbox/agent/environment.ts'
import type { Called } from '#src/toolbox/server.ts'
import { sdkSourceHeader, sdkVersionHeader } from '#src/wire/access.ts'
import type { Compiled } from '#src/wire/gate-link.ts'
import { isOfPeers } from '#src/wire/gate-peers.ts'
import type { MeterReading } from '#src/wire/meter-reading.ts'
import type { AccessDesk } from './access.ts'
import { corsHeaders } from './cors.ts'
import type { Door, Entering } from './door.ts'
import { RunnerAway, type RunnerLink } from './runner-link.ts'

/** Answers toolbox calls. If an upgrade is refused, throws a Problem before anything is sent to the caller. */
export type Answering = {
  call: (request: IncomingMessage, response: ServerResponse) => void
  upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<number>
}

const notForToolboxes = new Set(['authorization', 'cookie'])
const ofSdks = new Set([sdkVersionHeader, sdkSourceHeader])

/** Whether the gate passes a header of a caller on to the toolbox. The gate passes on no credentials. */
export const isForToolbox = (name: string): boolean =>
  !isOfPeers(name) &&
  !notForToolboxes.has(name) &&
  (!name.startsWith('x-daytona-') || ofSdks.has(name)) &&
  !name.startsWith('x-service-')

const letIn = new WeakMap<IncomingMessage, { entering: Entering; path: string }>()

/** Prepares the call for the toolbox: removes the caller's credentials, and headers that are not for the toolbox. */
const admit = (request: IncomingMessage, entering: Entering, rest: string) => {
  const { headers } = request
  for (const name of Object.keys(headers)) if (!isForToolbox(name)) delete headers[name]
  const path = rest || '/'
  request.url = `/toolbox/${encodeURIComponent(entering.sandboxId)}${path}`
  letIn.set(request, { entering, path })
}

type ControlOfVariables = Pick<AccessDesk, 'changeVariables'>

const calledIn = (link: RunnerLink, sandbox: Called['sandbox'], changeVariables: Called['changeVariables']): Called => {
  const { id: sandboxId } = sandbox
  const ask = async <T>(...given: Parameters<RunnerLink['ask']>): Promise<T> => {
    try {
      return await link.ask<T>(...given)
    } catch (cause) {
      if (!(cause instanceof RunnerAway)) throw cause
      throw new Problem('unavailable', 'The runner of this sandbox does not answer; try again.', { cause })
    }
  }
  return {
    sandbox,
    measure: async () => (await ask<MeterReading | null>({ ask: 'measure', sandboxId })) ?? undefined,
    memoryKills: () => link.memoryKills.find(sandboxId),
    compiler: {
      compile: (source, format, { signal }) => ask<Compiled>({ ask: 'compile', format }, oneOf(source), signal),
      typeRemover: () => ask<string>({ ask: 'type-remover' }),
    },
    changeVariables,
  }
}

async function* oneOf(text: string) {
  yield Buffer.from(text)
}

/**
 * Returns the function that finds the sandbox of a call. The returned function throws if the call has no ticket for the sandbox.
 */
export const calledBy =
  (door: Door, control: ControlOfVariables) =>
  async (request: IncomingMessage, sandboxId: string): Promise<Called> => {
    const { entering, path } = letIn.get(request) ?? {}
    if (entering === undefined || path === undefined) throw new Problem('unauthorized')
    if (entering.sandboxId !== sandboxId) throw new Problem('unauthorized')
    const need = { method: request.method ?? 'GET', path }
    const { sandbox, link } = await door.enter(entering, need)
    if (sandbox === undefined) throw noSandbox(sandboxId)
    return calledIn(link, sandbox, async (change) => {
      const { ticket } = entering
      const inherited = inheritedBy(sandbox.assignment, sandbox.config?.env)
      const { generation } = await control.changeVariables({ ticket, inherited, ...change })
      // Wait until the runner has reported the sandbox's new generation, so that the caller's next call runs with the
      // new variables.
      await door.enter({ ...entering, leastGeneration: generation }, need)
    })
  }

/** Passes a call on to the toolbox, which answers the caller. The gate sets the CORS headers of the answer. */
export const passCall = (
  toolbox: Answering,
  request: IncomingMessage,
  response: ServerResponse,
  admitted: { entering: Entering; rest: string },
): void => {
  const headers = corsHeaders(request)
  for (let at = 0; at + 1 < headers.length; at += 2) response.appendHeader(headers[at]!, headers[at + 1]!)
  passAdmitted(toolbox, request, response, admitted)
}

/** Passes a call of another gate on to the toolbox, without CORS headers, which the other gate sets. */
export const passAdmitted = (
  toolbox: Answering,
  request: IncomingMessage,
  response: ServerResponse,
  { entering, rest }: { entering: Entering; rest: string },
): void => {
  admit(request, entering, rest)
  toolbox.call(request, response)
}

/** Passes an upgrade on to the toolbox. Returns the status of the toolbox's answer. Throws a Problem if the toolbox refuses. */
export const passUpgrade = (
  toolbox: Answering,
  request: IncomingMessage,
  socket: Duplex,
  { head, entering, rest }: { head: Buffer; entering: Entering; rest: string },
): Promise<number> => {
  admit(request, entering, rest)
  return toolbox.upgrade(request, socket, head)
}
