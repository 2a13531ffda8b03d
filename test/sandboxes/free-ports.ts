// Finds several free ports with consecutive numbers for a server of a test.
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

/**
 * Returns the first of `count` consecutive free ports. All these ports are below 32768, because the kernel gives higher ports to
 * outgoing connections.
 */
export const freePorts = async (count: number): Promise<number> => {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const first = randomInt(10_000, 32_000)
    const ports = Array.from({ length: count }, (_, index) => first + index)
    if ((await Promise.all(ports.map(isFree))).every(Boolean)) return first
  }
  throw new Error('found no free ports')
}
