// Hands a connection over to a toolbox: after the toolbox has agreed, bytes pass both ways unread.
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { Problem } from '#src/problems.ts'
import { headersForCaller, upgradeHeadersForToolbox } from './headers.ts'
import { headOf } from './refusal.ts'
import type { Runners } from './runners.ts'

export type Handover = {
  request: IncomingMessage
  socket: Duplex
  /** What the caller sent right behind its head. */
  head: Buffer
  runnerAddress: string
  path: string
}

const answerMs = 30_000

/** How long the second side may take to end after the first has; its last bytes still pass. */
const lingerMs = 2000

const join = (one: Duplex, other: Duplex) => {
  const part = () => {
    one.destroy()
    other.destroy()
  }
  let linger: NodeJS.Timeout | undefined
  const onEnd = () => {
    linger ??= setTimeout(part, lingerMs).unref()
    if (one.destroyed && other.destroyed) clearTimeout(linger)
  }
  one.pipe(other).pipe(one)
  for (const [end, opposite] of [
    [one, other],
    [other, one],
  ] as const) {
    end.on('error', part).once('end', onEnd)
    end.once('close', () => {
      opposite.end()
      onEnd()
    })
  }
}

/** Answers when both are joined, or when the toolbox's refusal has been passed on (`false`). */
export const handOver = (
  runners: Runners,
  { request, socket, head, runnerAddress, path }: Handover,
): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const outgoing = runners.request(runnerAddress, {
      method: 'GET',
      path,
      headers: upgradeHeadersForToolbox(request),
      isUpgrade: true,
    })
    const timer = setTimeout(() => outgoing.destroy(new Error('the toolbox did not answer the upgrade')), answerMs)
    const hangUp = () => {
      clearTimeout(timer)
      outgoing.destroy()
      reject(new Problem('gone'))
    }
    socket.once('close', hangUp)
    const settle = (isJoined: boolean) => {
      clearTimeout(timer)
      socket.off('close', hangUp)
      resolve(isJoined)
    }
    outgoing.once('error', (cause) => {
      clearTimeout(timer)
      reject(new Problem('bad_gateway', undefined, { cause }))
    })
    outgoing.once('upgrade', (answer, toolbox, firstBytes) => {
      socket.write(
        headOf(101, STATUS_CODES[101]!, [
          ...headersForCaller(answer),
          'Connection',
          'Upgrade',
          'Upgrade',
          answer.headers.upgrade ?? 'websocket',
        ]),
      )
      if (firstBytes.length > 0) toolbox.unshift(firstBytes)
      if (head.length > 0) socket.unshift(head)
      join(socket, toolbox)
      settle(true)
    })
    outgoing.once('response', (answer) => {
      // In pieces the body would need framing that the plain socket does not do; its end is the connection's.
      socket.write(
        headOf(answer.statusCode ?? 502, answer.statusMessage ?? '', [
          ...headersForCaller(answer),
          'Connection',
          'close',
        ]),
      )
      answer.pipe(socket)
      answer.once('error', () => socket.destroy())
      settle(false)
    })
    outgoing.end()
  })
