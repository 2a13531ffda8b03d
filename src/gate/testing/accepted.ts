// For tests: finds the gate's end of a connection that the test has opened to the gate.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** Resolves with the next connection that the gate accepts on this port. */
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
