// For tests: a client that ignores the agent's protocol.
import { once } from 'node:events'
import { connect } from 'node:net'

/**
 * Sends raw bytes and returns the agent's answers. `thenClose`: ends the sending side and waits until the agent closes the
 * connection.
 */
export const provoke = async (socketPath: string, pieces: Uint8Array[], thenClose: boolean): Promise<Buffer> => {
  const socket = connect({ path: socketPath, allowHalfOpen: true })
  const answers: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => answers.push(chunk))
  for (const piece of pieces) socket.write(piece)
  if (thenClose) socket.end()
  await once(socket, thenClose ? 'close' : 'end', { signal: AbortSignal.timeout(30_000) })
  socket.destroy()
  return Buffer.concat(answers)
}
