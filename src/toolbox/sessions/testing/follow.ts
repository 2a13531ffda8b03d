// For tests: reads a log stream as the public SDK does, and splits it at the markers of stdout and stderr.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { WebSocket } from 'ws'

type Followed = { stdout: Buffer; stderr: Buffer; code: number; frames: Buffer[] }

/** Reads until the server closes the socket. */
export const follow = async (socket: WebSocket): Promise<Followed> => {
  const frames: Buffer[] = []
  socket.on('message', (data, isBinary) => {
    assert.ok(isBinary)
    frames.push(data as Buffer)
  })
  const [code] = (await once(socket, 'close')) as [number]
  const of = (marker: number) =>
    Buffer.concat(frames.filter((frame) => frame[0] === marker).map((frame) => frame.subarray(3)))
  return { stdout: of(1), stderr: of(2), code, frames }
}

/** Returns the status of a refused upgrade. */
export const refusalOf = async (socket: WebSocket): Promise<number> => {
  socket.on('error', () => undefined)
  const [, answer] = await once(socket, 'unexpected-response')
  answer.resume()
  return answer.statusCode
}
