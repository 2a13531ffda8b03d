// For tests: the other end of a connection that the test has made.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** The gate's end of the next connection to it. */
export const accepted = (port: number): Promise<Socket> =>
  new Promise((resolve) => {
    const look = (message: unknown) => {
      const { socket } = message as { socket: Socket }
      if (socket.localPort !== port) return
      unsubscribe('net.server.socket', look)
      resolve(socket)
    }
    subscribe('net.server.socket', look)
  })
