// Hands a connection over: after the other side has agreed, bytes pass both ways unread.
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { endSoon, headOf } from '#src/http/linger.ts'
import { pour } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import type { Destination } from './destination.ts'

type Handover = {
  socket: Duplex
  /** What the caller sent right behind its head. */
  head: Buffer
  destination: Destination
  /** How long the connection stays after an answer that is no upgrade. */
  lingerMs?: number | undefined
}

const answerMs = 30_000

/** How long the second side may take to end after the first has, or has failed; the last bytes of the first still pass. */
const partMs = 2000

const join = (one: Duplex, other: Duplex) => {
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
    // A side that fails closes; what came from it before is still the other's to hear.
    end.on('error', () => {}).once('end', onEnd)
    end.once('close', () => {
      opposite.end()
      // Cut off with something unread, it would be told of that instead.
      opposite.resume()
      onEnd()
    })
  }
}

/** Header values came as latin1, which is how HTTP/1.1 has them; as UTF-8 they would be others. */
const sendHead = (socket: Duplex, ...head: Parameters<typeof headOf>) => socket.write(headOf(...head), 'latin1')

/** Answers the status: 101 when both are joined, another one when that has been passed on as the other side's refusal. */
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
      // In pieces the body would need framing that the plain socket does not do; its end is the connection's.
      const headers = [...destination.outward(answer), 'Connection', 'close']
      const status = answer.statusCode ?? 502
      sendHead(socket, status, answer.statusMessage ?? '', headers)
      pour(answer, socket, () => endSoon(socket, lingerMs))
      answer.once('error', () => socket.destroy())
      // Only who reads hears that the caller has gone.
      socket.resume().once('end', () => socket.destroy())
      socket.once('close', () => outgoing.destroy())
      settle(status)
    })
    outgoing.end()
  })
