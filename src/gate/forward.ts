// Forwards one HTTP call (no upgrade) and its answer as streams. If one side disconnects, the other connection is ended.
// The destination may be a hostile server inside a sandbox.
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

/**
 * Bodies of at least this many bytes bypass the HTTP parser. A shorter body arrives with its head or soon after it, so bypassing
 * the parser would save little.
 */
const longBytes = 256 * 1024

/**
 * Returns the body's length if the gate can copy the body unchanged to the caller's socket. The headers `head` must contain the
 * length. Without the length, Node sends the body in HTTP chunks.
 */
const plainLengthOf = ({ statusCode, socket }: IncomingMessage, request: IncomingMessage, head: readonly string[]) => {
  const isPlain = request.method === 'GET' && (statusCode === 200 || statusCode === 206) && socket instanceof Inflow
  const at = head.findIndex((word, index) => index % 2 === 0 && word.toLowerCase() === 'content-length')
  const length = at < 0 ? 0 : Number(head[at + 1])
  return isPlain && length >= longBytes ? length : undefined
}

/**
 * Passes a long body on without the HTTP parser, which would copy all bytes. The parser has read the head and perhaps the
 * beginning of the body. The connection is not reused.
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

/** Sends the answer to the caller. `onEnd` runs when the destination has sent its whole answer. */
const answerWith = (answer: IncomingMessage, { request, response, destination }: Exchange, onEnd: () => void) => {
  const head = destination.outward(answer)
  // `writeHead` throws for a status or header that HTTP parsers accept but no server may send.
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage, head)
  const length = plainLengthOf(answer, request, head)
  if (length !== undefined) {
    answer.on('error', () => {})
    // Node's HTTP parser reads the first bytes of the body only after this function. `passBody` needs these bytes, so it runs
    // later.
    process.nextTick(passBody, answer, length, response)
    return
  }
  // An answer without a length may be a stream whose first bytes come late, so its head is sent immediately.
  if (answer.headers['content-length'] === undefined) response.flushHeaders()
  answer.once('error', () => response.destroy())
  pour(answer, response, () => {
    onEnd()
    response.end()
  })
}

/** Resolves when the call is over. Rejects with a Problem only if the caller has received no part of an answer. */
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
      // The code that sends the error to the caller reads and drops the rest of the request body.
      stopBody()
      if (response.headersSent || response.destroyed) response.destroy()
      else reject(destination.failure(cause))
    }
    let isAnswered = false
    response.once('close', () => {
      // Nobody needs the rest of the request body or of the answer any more.
      if (!response.writableFinished || !request.complete) outgoing.destroy()
      resolve()
    })
    outgoing.on('error', (cause) => {
      // An error of the connection matters only before the answer begins: a server may answer and close without reading
      // the whole request body.
      if (!isAnswered) fail(cause)
    })
    outgoing.once('close', () => {
      if (!isAnswered) fail('it closed the connection')
      // Read and drop the rest of the request body: many callers send the whole body before they read the answer.
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
    // While bytes of the body wait in the buffer, Node's `end` adds an empty write. The server may answer and close after the last
    // byte of the body. Then the empty write would fail, and the answer would be lost. So if the body's length is known, the gate
    // calls `end` after the answer.
    const endBody = () => {
      const hasSaidAll = request.headers['content-length'] !== undefined
      if (hasSaidAll && !isAnswered && outgoing.writableLength > 0) outgoing.once('response', () => outgoing.end())
      else outgoing.end()
    }
    if (!hasBody(request)) return outgoing.end()
    stopBody = pour(request, outgoing, endBody)
  })
