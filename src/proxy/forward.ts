// Forwards one plain call to a toolbox and its answer back, both as streams: neither side may be faster than the other,
// and when one goes away the other hears of it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Problem } from '#src/problems.ts'
import { corsHeaders } from './cors.ts'
import { hasBody, headersForCaller, headersForToolbox } from './headers.ts'
import type { Runners } from './runners.ts'

export type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  runnerAddress: string
  /** At the toolbox, with the query. */
  path: string
}

/** Answers when the call is over; throws a Problem only while nothing has been answered. */
export const forward = (runners: Runners, { request, response, runnerAddress, path }: Exchange): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = runners.request(runnerAddress, {
      method: request.method ?? 'GET',
      path,
      headers: headersForToolbox(request),
    })
    const hangUp = () => {
      if (!response.writableFinished) outgoing.destroy()
      resolve()
    }
    response.once('close', hangUp)
    outgoing.once('error', (cause) => {
      if (response.headersSent || response.destroyed) response.destroy()
      else reject(new Problem('bad_gateway', undefined, { cause }))
    })
    outgoing.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage, [
        ...headersForCaller(answer),
        ...corsHeaders(request),
      ])
      // An answer without a length may be a stream whose first piece is far away: its head must not wait for that.
      if (answer.headers['content-length'] === undefined) response.flushHeaders()
      answer.once('error', () => response.destroy())
      answer.pipe(response)
    })
    if (hasBody(request)) request.pipe(outgoing)
    else outgoing.end()
  })
