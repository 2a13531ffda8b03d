// Reads from the kernel's socket tables how much uncharged memory a sandbox's sockets hold: messages in netlink sockets, TCP
// connections that were not accepted, and datagrams that were begun but not sent (`MSG_MORE`).
import { open, readFile } from 'node:fs/promises'

export type FullSockets = 'netlink sockets' | 'unaccepted connections' | 'unsent datagrams'

/** The limit of uncharged bytes in a sandbox's sockets. Ordinary programs have far less. */
export const mostSocketBytes = 64 * 1024 ** 2

/** Bytes of a connection that waits to be accepted: the socket and its request, which the kernel charges to nobody. */
const connectionBytes = 3 * 1024

/**
 * A sandbox with fewer sockets than this is not examined, because reading its table walks the table of the whole host. About half
 * of these few sockets can be waiting connections of at most 8 MiB each: twice `net.core.rmem_max`.
 */
const fewSockets = 16

/**
 * Bytes of one line of `net/netlink`: unread messages (`Rmem`), and sent data that is still kept (`Wmem`), such as a long request
 * whose answer nobody reads. The first line has column names and counts as 0.
 */
export const parseNetlinkBytes = (line: string): number => {
  const [, , , , received, sent] = line.trim().split(/\s+/)
  return (Number(received) || 0) + (Number(sent) || 0)
}

/**
 * Number of TCP and UDP sockets of one network namespace, from `net/sockstat` or `net/sockstat6`. These files are cheap to read.
 */
export const parseSocketCount = (sockstat: string): number =>
  [...sockstat.matchAll(/^(?:TCP|UDP)6?: inuse (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

type Queues = { state: string; inode: string; sent: number; received: number }

/** Parses a line of `net/tcp`, `net/udp` or `net/tcp6`, `net/udp6`. Undefined for the first line, which has column names. */
const parseQueues = (line: string): Queues | undefined => {
  const [, , , state = '', queues = '', , , , , inode = ''] = line.trim().split(/\s+/)
  const [, sent, received] = /^([0-9A-F]+):([0-9A-F]+)$/.exec(queues) ?? []
  if (sent === undefined || received === undefined) return undefined
  return { state, inode, sent: Number.parseInt(sent, 16), received: Number.parseInt(received, 16) }
}

/**
 * Bytes of a connection (established, or closed by its peer) that no process has: its inode is 0. Received data is charged to
 * nobody until the connection is accepted.
 */
export const parseUnacceptedBytes = (line: string): number => {
  const socket = parseQueues(line)
  if (socket?.inode !== '0' || (socket.state !== '01' && socket.state !== '08')) return 0
  return connectionBytes + socket.sent + socket.received
}

/** Data that a UDP socket has received is charged to its sandbox; data that is yet to be sent is not. */
export const parseUnsentBytes = (line: string): number => parseQueues(line)?.sent ?? 0

/** Adds up the bytes of the lines. Stops once the sum exceeds `most`, because the table may be long. */
const sumLines = async (path: string, most: number, bytesOf: (line: string) => number): Promise<number> => {
  await using file = await open(path)
  let bytes = 0
  for await (const line of file.readLines()) {
    bytes += bytesOf(line)
    if (bytes > most) break
  }
  return bytes
}

/** Returns `none` on a kernel without IPv6, because such a kernel has no IPv6 tables. */
const ofIPv6 = async <T>(read: Promise<T>, none: T): Promise<T> =>
  read.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return none
    throw error
  })

/** Returns which kind of socket holds too much, in the sandbox whose first process is `pid`. Throws if the sandbox has ended. */
export const findFullSockets = async (pid: number, most = mostSocketBytes): Promise<FullSockets | undefined> => {
  const table = (name: string) => `/proc/${pid}/net/${name}`
  const isMore = async (name: string, bytesOf: (line: string) => number) => {
    const bytes = await sumLines(table(name), most, bytesOf)
    return bytes > most || bytes + (await ofIPv6(sumLines(table(`${name}6`), most, bytesOf), 0)) > most
  }
  if ((await sumLines(table('netlink'), most, parseNetlinkBytes)) > most) return 'netlink sockets'
  const counts = [readFile(table('sockstat'), 'utf8'), ofIPv6(readFile(table('sockstat6'), 'utf8'), '')]
  if (parseSocketCount((await Promise.all(counts)).join('')) <= fewSockets) return undefined
  if (await isMore('tcp', parseUnacceptedBytes)) return 'unaccepted connections'
  return (await isMore('udp', parseUnsentBytes)) ? 'unsent datagrams' : undefined
}
