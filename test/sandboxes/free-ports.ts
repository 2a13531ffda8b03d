// Finds several free ports with consecutive numbers for a server of a test.
import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

/**
 * Reserves a port among all processes that call `freePorts`, until this process ends: listens on an abstract Unix socket with the
 * port in its name, see unix(7). Returns undefined if another process has reserved the port.
 */
const reserve = (port: number) =>
  new Promise<Server | undefined>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen(`\0alcove-test-port-${port}`, () => resolve(server.unref()))
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
    for (const server of reserved) server?.close()
  }
  throw new Error('found no free ports')
}
