// Forwards one plain call and its answer back, both as streams: neither side may be faster than the other, and when one
// goes away the other hears of it. The other side may be a hostile server inside a sandbox.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pour } from '#src/kit/pour.ts'
import type { Destination } from './destination.ts'
import { hasBody } from './headers.ts'

export type Exchange = { request: IncomingMessage; response: ServerResponse; destination: Destination }

const answerWith = (answer: IncomingMessage, response: ServerResponse, { outward }: Destination) => {
  // Throws for a status or a header that HTTP parsers let pass and no HTTP server may send.
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, outward(answer))
  // An answer without a length may be a stream whose first piece is far away: its head must not wait for that.
  if (answer.headers['content-length'] === undefined) response.flushHeaders()
  answer.once('error', () => response.destroy())
  pour(answer, response)
}

/** Answers when the call is over; throws a Problem only while nothing has been answered. */
export const forward = ({ request, response, destination }: Exchange): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = destination.send({
      method: request.method ?? 'GET',
      path: destination.path,
      headers: destination.inward(false),
    })
    const fail = (cause: unknown) => {
      outgoing.destroy()
      if (response.headersSent || response.destroyed) response.destroy()
      else reject(destination.failure(cause))
    }
    let isAnswered = false
    let stopBody = () => {}
    response.once('close', () => {
      // Also when all is answered and a body still comes that nobody waits for.
      if (!response.writableFinished || !request.complete) outgoing.destroy()
      resolve()
    })
    outgoing.on('error', (cause) => {
      // After an answer has begun, that is what tells how this ends: a server may answer without reading all of a body.
      if (!isAnswered) fail(cause)
    })
    outgoing.once('close', () => {
      if (!isAnswered) fail('it closed the connection')
      // What nobody takes any more is read away, so that the caller gets to read the answer.
      stopBody()
      request.resume()
    })
    outgoing.once('response', (answer) => {
      isAnswered = true
      if (response.destroyed) return outgoing.destroy()
      try {
        answerWith(answer, response, destination)
      } catch (error) {
        fail(error)
      }
    })
    if (hasBody(request)) stopBody = pour(request, outgoing)
    else outgoing.end()
  })
