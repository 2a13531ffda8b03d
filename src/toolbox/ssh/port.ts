// Passes an SSH port forwarding on to a port on the sandbox's loopback. Each direction can end while the other continues.
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { bytesOf, closeWith, sendWhole } from '#src/http/socket.ts'
import { notStarted, Problem } from '#src/problems.ts'
import { beforeDeadline, deadlineOf } from '#src/toolbox/running/deadline.ts'
import { AgentRefused } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'

const dialSeconds = 10

/** Connects to a port in the sandbox. Throws a Problem if nothing listens on the port. */
export const dialPort = async ({ agent }: ToolboxSandbox, port: number): Promise<Duplex> => {
  using deadline = deadlineOf(undefined, { seconds: dialSeconds })
  const dialling = agent.dial(port)
  try {
    return await beforeDeadline(dialling, deadline)
  } catch (error) {
    dialling.then(
      (late) => late.destroy(),
      () => undefined,
    )
    if (error instanceof AgentRefused && error.stage === 'connect') {
      throw new Problem('unprocessable', `Nothing listens on port ${port} of this sandbox.`, { cause: error })
    }
    if (error instanceof Problem) throw error
    throw notStarted('The sandbox stopped before it answered.', { cause: error })
  }
}

/**
 * Copies bytes in both directions. Sends no pings, because the SSH gateway would not answer while the user's SSH client does not
 * read.
 */
export const servePort = async (socket: WebSocket, connection: Duplex): Promise<void> => {
  socket.on('message', (data, isBinary) => {
    if (!isBinary) return void connection.end()
    if (connection.write(bytesOf(data)) || connection.destroyed) return
    socket.pause()
  })
  connection.on('drain', () => socket.resume())
  connection.on('error', () => closeWith(socket, 1011, 'the connection broke'))
  connection.once('close', () => socket.resume())
  socket.once('close', () => connection.destroy())
  try {
    for await (const piece of connection.iterator({ destroyOnReturn: false })) await sendWhole(socket, piece)
    await sendWhole(socket, 'eof')
    if (!connection.writableFinished && !connection.destroyed) {
      await new Promise<void>((resolve) => connection.once('finish', resolve).once('close', resolve))
    }
    closeWith(socket, 1000, '')
  } catch {
    closeWith(socket, 1011, 'the connection broke')
  } finally {
    if (socket.readyState === socket.CLOSED) connection.destroy()
  }
}
