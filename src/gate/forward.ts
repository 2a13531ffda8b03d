// Forwards one plain call and its answer back, both as streams: neither side may be faster than the other, and when one
// goes away the other hears of it. The other side may be a hostile server inside a sandbox.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasBody } from '#src/http/answer.ts'
import { beneath, Inflow, writeThrough } from '#src/kit/inflow.ts'
import { pour } from '#src/kit/pour.ts'
import type { Destination } from './destination.ts'

type Exchange = {
  request: IncomingMessage
  response: ServerResponse
  destination: Destination
}

/** What is shorter than this comes with its head, or soon after it. */
const longBytes = 256 * 1024

/**
 * The length of a body that is long and nothing but its bytes; `undefined` for all others. `head` is what the caller reads of
 * it: where that says no length, its body goes out in other framing, and whatever is written below that frames the rest itself.
 */
const plainLengthOf = ({ statusCode, socket }: IncomingMessage, request: IncomingMessage, head: readonly string[]) => {
  const isPlain = request.method === 'GET' && (statusCode === 200 || statusCode === 206) && socket instanceof Inflow
  const at = head.findIndex((word, index) => index % 2 === 0 && word.toLowerCase() === 'content-length')
  const length = at < 0 ? 0 : Number(head[at + 1])
  return isPlain && length >= longBytes ? length : undefined
}

/**
 * Passes a long body on without its parser, which would copy each piece into memory of its own. The parser has seen the
 * head; what it has of the body is taken from it, the rest is counted, and the connection is not used again.
 */
const passBody = (answer: IncomingMessage, length: number, response: ServerResponse) => {
  const from = answer.socket as Inflow
  const to = beneath(response)
  let left = length
  const goOn = () => void from.resume()
  const take = (bytes: Buffer): boolean => {
    const mine = bytes.subarray(0, left)
    left -= mine.length
    if (left > 0) return writeThrough(to, mine, goOn)
    to.write(mine, () => response.end(() => from.destroy()))
    return false
  }
  const onClose = () => {
    if (left > 0) response.destroy()
  }
  if (from.destroyed) return onClose()
  from.once('close', onClose)
  const first = answer.read() as Buffer | null
  from.takeOver(take)
  if (first !== null && !take(first)) from.pause()
}

/** `onEnd` runs when the other side has said all of its answer. */
const answerWith = (answer: IncomingMessage, { request, response, destination }: Exchange, onEnd: () => void) => {
  const head = destination.outward(answer)
  // Throws for a status or a header that HTTP parsers let pass and no HTTP server may send.
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, head)
  const length = plainLengthOf(answer, request, head)
  if (length !== undefined) {
    answer.on('error', () => {})
    // Not before the parser is through with what came with the head.
    process.nextTick(passBody, answer, length, response)
    return
  }
  // An answer without a length may be a stream whose first piece is far away: its head must not wait for that.
  if (answer.headers['content-length'] === undefined) response.flushHeaders()
  answer.once('error', () => response.destroy())
  pour(answer, response, () => {
    onEnd()
    response.end()
  })
}

/** Answers when the call is over; throws a Problem only while nothing has been answered. */
export const forward = ({ request, response, destination }: Exchange): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = destination.send({
      method: request.method ?? 'GET',
      path: destination.path,
      headers: destination.inward(false),
    })
    let stopBody = () => {}
    const fail = (cause: unknown) => {
      outgoing.destroy()
      // Whoever tells the caller reads the rest of the body away.
      stopBody()
      if (response.headersSent || response.destroyed) response.destroy()
      else reject(destination.failure(cause))
    }
    let isAnswered = false
    response.once('close', () => {
      // A body may still come after the whole answer; nobody waits for it.
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
        answerWith(answer, { request, response, destination }, () => stopBody())
      } catch (error) {
        fail(error)
      }
    })
    // Ends a body whose length the other side knows without another write: a server that answers and closes at its last byte
    // would break that write, and with it the reading of the answer.
    const endBody = () => {
      const hasSaidAll = request.headers['content-length'] !== undefined
      if (hasSaidAll && !isAnswered && outgoing.writableLength > 0) outgoing.once('response', () => outgoing.end())
      else outgoing.end()
    }
    if (!hasBody(request)) return outgoing.end()
    stopBody = pour(request, outgoing, endBody)
  })
