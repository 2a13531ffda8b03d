// An SMTP server on loopback (RFC 5321, without extensions). A test can make it refuse mail or close the connection.
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export type ReceivedMail = {
  from: string
  to: string[]
  /**
   * Header and text of the mail. The extra dot that a sender puts before a line that begins with a dot is removed (RFC 5321
   * §4.5.2).
   */
  raw: string
}

/**
 * What the server does with later mail. `take`: accepts it. A number: refuses it with this code. `hang up`: receives the whole mail
 * and closes the connection without an answer.
 */
export type Manners = 'take' | 'hang up' | number

export type MailServer = AsyncDisposable & {
  url: string
  received: ReceivedMail[]
  behave: (manners: Manners) => void
}

type State = { from: string; to: string[]; lines: string[] | undefined }

export const startMailServer = async (): Promise<MailServer> => {
  const received: ReceivedMail[] = []
  const sockets = new Set<Socket>()
  let manners: Manners = 'take'

  const finish = (socket: Socket, { from, to, lines = [] }: State) => {
    if (manners === 'hang up') return void socket.destroy()
    if (typeof manners === 'number') return void socket.write(`${manners} not now\r\n`)
    received.push({ from, to, raw: lines.join('\r\n') })
    socket.write('250 taken\r\n')
  }

  const converse = (socket: Socket) => {
    const state: State = { from: '', to: [], lines: undefined }
    socket.write('220 test\r\n')
    createInterface({ input: socket, crlfDelay: 0 }).on('line', (line) => {
      if (state.lines !== undefined) {
        if (line !== '.') return void state.lines.push(line.replace(/^\./, ''))
        finish(socket, state)
        state.lines = undefined
        return
      }
      const [verb = ''] = line.toUpperCase().split(/[ :]/)
      const path = /<([^>]*)>/.exec(line)?.[1] ?? ''
      if (verb === 'MAIL') Object.assign(state, { from: path, to: [] })
      if (verb === 'RCPT') state.to.push(path)
      if (verb === 'DATA') state.lines = []
      socket.write(verb === 'DATA' ? '354 go on\r\n' : verb === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n')
      if (verb === 'QUIT') socket.end()
    })
  }

  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    converse(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    url: `smtp://127.0.0.1:${port}`,
    received,
    behave: (next) => {
      manners = next
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
