// Passes an upgrade (such as a WebSocket) on. After that, bytes are copied in both directions without being parsed.
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { endSoon, headOf } from '#src/http/linger.ts'
import { pour } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import type { Destination } from './destination.ts'

type Handover = {
  socket: Duplex
  /** The first bytes that the caller sent after the head of its upgrade request. Node has read them together with that head. */
  head: Buffer
  destination: Destination
  /** If an upgrade gets an ordinary answer, the connection is closed at most this many ms after the end of that answer. */
  lingerMs?: number | undefined
}

const answerMs = 30_000

/**
 * When one of the two connections has ended, both are closed after at most this many ms. Until then, the gate passes on the last
 * bytes of the ended connection.
 */
const partMs = 2000

export const join = (one: Duplex, other: Duplex) => {
  const part = () => {
    one.destroy()
    other.destroy()
  }
  let linger: NodeJS.Timeout | undefined
  const onEnd = () => {
    linger ??= setTimeout(part, partMs).unref()
    if (one.destroyed && other.destroyed) clearTimeout(linger)
  }
  pour(one, other)
  pour(other, one)
  for (const [end, opposite] of [
    [one, other],
    [other, one],
  ] as const) {
    // If one connection fails, the program at the other connection still gets the bytes that had arrived.
    end.on('error', () => {}).once('end', onEnd)
    end.once('close', () => {
      opposite.end()
      // Read and drop what the opposite side still sends. If these bytes stayed unread, that side would see a reset instead of the
      // end.
      opposite.resume()
      onEnd()
    })
  }
}

/** Writes a head in latin1, the encoding in which HTTP/1.1 header values arrived; UTF-8 would change them. */
const sendHead = (socket: Duplex, ...head: Parameters<typeof headOf>) => socket.write(headOf(...head), 'latin1')

/**
 * Connects the caller with the destination and returns 101. If the destination refuses, passes its answer on and returns
 * its status.
 */
export const handOver = ({ socket, head, destination, lingerMs }: Handover): Promise<number> =>
  new Promise((resolve, reject) => {
    const outgoing = destination.send({
      method: 'GET',
      path: destination.path,
      headers: destination.inward(true),
      isUpgrade: true,
    })
    const timer = setTimeout(() => outgoing.destroy(new Error('the upgrade was not answered')), answerMs)
    const hangUp = () => {
      clearTimeout(timer)
      outgoing.destroy()
      reject(new Problem('gone'))
    }
    socket.once('close', hangUp)
    const settle = (status: number) => {
      clearTimeout(timer)
      socket.off('close', hangUp)
      resolve(status)
    }
    outgoing.on('error', (cause) => {
      clearTimeout(timer)
      reject(destination.failure(cause))
    })
    outgoing.once('upgrade', (answer, other, firstBytes) => {
      const { upgrade = 'websocket' } = answer.headers
      const headers = [...destination.outward(answer), 'Connection', 'Upgrade', 'Upgrade', upgrade]
      sendHead(socket, 101, STATUS_CODES[101]!, headers)
      if (firstBytes.length > 0) other.unshift(firstBytes)
      if (head.length > 0) socket.unshift(head)
      join(socket, other)
      settle(101)
    })
    outgoing.once('response', (answer) => {
      // Close after the body: chunked framing is not possible on this raw socket, so the end of the connection ends the body.
      let headers: string[]
      try {
        headers = [...destination.outward(answer), 'Connection', 'close']
      } catch (error) {
        outgoing.destroy()
        clearTimeout(timer)
        return reject(destination.failure(error))
      }
      const status = answer.statusCode ?? 502
      sendHead(socket, status, answer.statusMessage ?? '', headers)
      pour(answer, socket, () => endSoon(socket, lingerMs))
      answer.once('error', () => socket.destroy())
      // Keep reading from the caller's connection: only then the gate notices that the caller has disconnected.
      socket.resume().once('end', () => socket.destroy())
      socket.once('close', () => outgoing.destroy())
      settle(status)
    })
    outgoing.end()
  })
