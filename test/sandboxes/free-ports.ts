// Finds several free ports with consecutive numbers for a server of a test.
import { randomInt } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { createServer } from 'node:net'

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

/**
 * Reserves a port among all processes that call `freePorts`, until this process ends: binds the number of the port in UDP, in which
 * no server of a test listens. Returns undefined if another process has reserved it.
 */
const reserve = (port: number) =>
  new Promise<Socket | undefined>((resolve) => {
    const socket = createSocket('udp4')
    socket.once('error', () => socket.close(() => resolve(undefined)))
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(socket.unref()))
  })

/**
 * Returns the first of `count` consecutive free ports. All these ports are below 32768, because the kernel gives higher ports to
 * outgoing connections.
 */
export const freePorts = async (count: number): Promise<number> => {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const first = randomInt(10_000, 32_000)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    const reserved = await Promise.all(ports.map(reserve))
    if (!reserved.includes(undefined) && (await Promise.all(ports.map(isFree))).every(Boolean)) return first
    for (const socket of reserved) socket?.close()
  }
  throw new Error('found no free ports')
}
