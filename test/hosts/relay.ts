// Listens on a TCP port of a simulated host and forwards each connection to a unix socket. The process that listens on this socket
// may run outside of the simulated host. Usage: node relay.ts ADDRESS PORT SOCKET
import { connect, createServer, type Socket } from 'node:net'

const [host, port, path = ''] = process.argv.slice(2)

const join = (from: Socket, to: Socket) => {
  from.pipe(to)
  from.once('error', () => to.destroy())
  from.once('close', () => to.destroy())
}

const server = createServer((client) => {
  const inside = connect(path)
  join(client, inside)
  join(inside, client)
})
server.listen(Number(port), host, () => console.log('relays'))
