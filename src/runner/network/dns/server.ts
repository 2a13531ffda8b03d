// The DNS server for sandboxes with allowed domains. The server answers only for listed names, with addresses that were first
// opened in the firewall. It knows a sandbox by the source address of packets; the firewall drops forged addresses.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Budget } from '#src/kit/budget.ts'
import { isListed } from './domains.ts'
import { type Answer, codes, mostQuestionBytes, readQuestion, types, writeAnswer, writeCode } from './message.ts'

type ResolvedAddress = { address: string; ttl: number }

export type DnsServerParts = {
  /** The host's address on which the server listens. The kernel chooses the ports. */
  address: string
  domainsOf: (sandbox: string) => readonly string[] | undefined
  /** Asks other resolvers for the addresses of a name. Rejects with an error that has a `code` of `node:dns`. */
  lookup: (name: string) => Promise<readonly ResolvedAddress[]>
  /** Opens addresses in the firewall for a sandbox. Returns the opened addresses. The answer may contain only these addresses. */
  open: (sandbox: string, name: string, addresses: readonly string[], seconds: number) => Promise<readonly string[]>
}

export type DnsServer = { udp: number; tcp: number; close: () => void }

/**
 * Maximum size in bytes of an answer over UDP. After a truncated answer, the client asks again over TCP. Larger answers over UDP
 * would need EDNS.
 */
const mostUdpBytes = 512
const mostTcpBytes = 65_535
const mostAddresses = 64
/** Maximum seconds for which a client may store an answer. The firewall keeps the address open for longer. */
const mostSeconds = 300
/**
 * Maximum numbers of questions that are being answered at a time: `each` for one sandbox, `all` for all sandboxes together. When
 * `all` is used up, each sandbox may still have `sure` questions.
 */
const mostAtOnce = { each: 64, all: 2048, sure: 4 }
const mostConnections = { each: 8, all: 1024, sure: 1 }
const idleMs = 10_000

/**
 * After NXDOMAIN, every client stops asking. After REFUSED, musl would wait for its timeout, and glibc would ask the next server.
 */
const notListed = codes.noSuchName

const empty = (code: Answer['code']): Answer => ({ code, addresses: [], seconds: 0 })

const codeOf = (error: unknown) => {
  const { code } = error as { code?: unknown }
  if (code === 'ENOTFOUND') return codes.noSuchName
  return code === 'ENODATA' ? codes.ok : codes.serverFailure
}

export const startDnsServer = async (parts: DnsServerParts): Promise<DnsServer> => {
  const { address, domainsOf, lookup, open } = parts
  const underWay = new Budget(mostAtOnce)
  const connected = new Budget(mostConnections)

  const answerFor = async (sandbox: string, domains: readonly string[], name: string): Promise<Answer> => {
    if (!isListed(domains, name)) return empty(notListed)
    try {
      const found = (await lookup(name)).slice(0, mostAddresses)
      const seconds = Math.max(0, Math.min(mostSeconds, ...found.map(({ ttl }) => ttl)))
      const addresses = await open(sandbox, name, [...new Set(found.map((each) => each.address))], seconds)
      return { code: codes.ok, addresses, seconds }
    } catch (error) {
      return empty(codeOf(error))
    }
  }

  /** Makes the answer to a message from a sandbox. Undefined: no answer is sent. */
  const reply = async (sandbox: string, message: Buffer, limit: number): Promise<Buffer | undefined> => {
    const domains = domainsOf(sandbox)
    if (domains === undefined) return undefined
    const question = readQuestion(message)
    if (question === undefined) return undefined
    if (typeof question === 'number') return writeCode(message, question)
    const { name, type } = question
    if (name === undefined || !isListed(domains, name)) return writeAnswer(question, empty(notListed), limit)
    // Only questions for IPv4 addresses get records. Sandboxes have no IPv6. HTTPS, SRV or TXT records could name addresses that
    // the firewall has not opened.
    if (type !== types.A) return writeAnswer(question, empty(codes.ok), limit)
    if (!underWay.take(sandbox)) return undefined
    try {
      return writeAnswer(question, await answerFor(sandbox, domains, name), limit)
    } finally {
      underWay.give(sandbox)
    }
  }

  let isClosed = false
  const udp = createSocket('udp4')
  udp.on('message', async (message, from) => {
    const answer = await reply(from.address, message, mostUdpBytes)
    if (answer !== undefined && !isClosed) udp.send(answer, from.port, from.address, () => {})
  })
  udp.on('error', () => {})

  const serve = async (socket: Socket, sandbox: string) => {
    let waiting: Buffer = Buffer.alloc(0)
    // While a question is being answered, this loop reads nothing from the connection. Therefore unanswered questions do not fill
    // memory.
    for await (const chunk of socket) {
      waiting = Buffer.concat([waiting, chunk as Buffer])
      while (waiting.length >= 2) {
        const length = waiting.readUInt16BE(0)
        if (length > mostQuestionBytes) return
        if (waiting.length < 2 + length) break
        const answer = await reply(sandbox, waiting.subarray(2, 2 + length), mostTcpBytes)
        if (answer === undefined) return
        const size = Buffer.alloc(2)
        size.writeUInt16BE(answer.length)
        if (!socket.write(Buffer.concat([size, answer]))) await once(socket, 'drain')
        waiting = waiting.subarray(2 + length)
      }
    }
  }

  const tcp = createServer((socket) => {
    const sandbox = socket.remoteAddress ?? ''
    if (domainsOf(sandbox) === undefined || !connected.take(sandbox)) return void socket.destroy()
    socket.once('close', () => connected.give(sandbox))
    socket.on('error', () => {})
    socket.setTimeout(idleMs, () => socket.destroy())
    serve(socket, sandbox)
      .catch(() => {})
      .finally(() => socket.destroy())
  })

  udp.bind({ address, port: 0, exclusive: true })
  tcp.listen({ host: address, port: 0, exclusive: true })
  await Promise.all([once(udp, 'listening'), once(tcp, 'listening')])
  return {
    udp: udp.address().port,
    tcp: (tcp.address() as AddressInfo).port,
    close: () => {
      isClosed = true
      udp.close()
      tcp.close()
    },
  }
}
