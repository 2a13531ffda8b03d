// Forwards TCP connections from a port of a simulated host to a unix socket. The process that listens on the socket may be outside
// of the host. Usage: node relay.ts ADDRESS PORT SOCKET
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
