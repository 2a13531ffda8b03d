// A load balancer, as an operator has in front of several machines. It forwards each TCP connection to the next machine that
// accepts the connection. Usage: node balancer.ts ADDRESS PORT=HOST,HOST…
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

const patienceMs = 1000

/** Connects to the first of `hosts` that accepts a connection to `port`. Returns undefined if no host accepts a connection. */
const connectTo = async (hosts: readonly string[], port: number): Promise<Socket | undefined> => {
  for (const host of hosts) {
    const socket = connect({ host, port, allowHalfOpen: true })
    const opened = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), patienceMs)
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => clearTimeout(timer))
    })
    if (opened) return socket
    socket.destroy()
  }
  return undefined
}

const join = (from: Socket, to: Socket) => {
  from.pipe(to)
  from.once('error', () => to.destroy())
  from.once('close', () => to.destroy())
}

const [address, ...ports] = process.argv.slice(2)
for (const each of ports) {
  const [port = '', names = ''] = each.split('=')
  const hosts = names.split(',')
  let turn = 0
  const server = createServer({ allowHalfOpen: true }, async (client) => {
    client.on('error', () => client.destroy())
    const first = turn++ % hosts.length
    const inside = await connectTo([...hosts.slice(first), ...hosts.slice(0, first)], Number(port))
    if (inside === undefined || client.destroyed) {
      client.destroy()
      inside?.destroy()
      return
    }
    join(client, inside)
    join(inside, client)
  })
  await once(server.listen(Number(port), address), 'listening')
}
console.log('balances')
