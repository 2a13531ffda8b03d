// Kernel memory that is charged to nobody and that the kernel's own tables of sockets tell of, for each sandbox: messages in
// netlink sockets, TCP connections that nobody has accepted, and datagrams that were begun and not sent (`MSG_MORE`).
import { open, readFile } from 'node:fs/promises'

export type FullSockets = 'netlink sockets' | 'unaccepted connections' | 'unsent datagrams'

/** A program may well have some; none has this much. */
export const mostSocketBytes = 64 * 1024 ** 2

/** Bytes of a connection that waits to be accepted: the socket and its request, which the kernel charges to nobody. */
const connectionBytes = 3 * 1024

/**
 * What fewer sockets may hold is not worth a look at each: reading their table walks that of the whole host. Half of them are
 * connections that wait, of 8 MiB at most each: twice `net.core.rmem_max`.
 */
const fewSockets = 16

/**
 * The bytes of a line of `net/netlink`: what waits to be read (`Rmem`) and what was sent and is still kept, such as a long
 * question whose answer nobody reads (`Wmem`). The first line has names.
 */
export const parseNetlinkBytes = (line: string): number => {
  const [, , , , received, sent] = line.trim().split(/\s+/)
  return (Number(received) || 0) + (Number(sent) || 0)
}

/** How many TCP and UDP sockets there are: `net/sockstat`, `net/sockstat6`. Tells of one network namespace, and is cheap. */
export const parseSocketCount = (sockstat: string): number =>
  [...sockstat.matchAll(/^(?:TCP|UDP)6?: inuse (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

type Queues = { state: string; inode: string; sent: number; received: number }

/** A line of `net/tcp`, `net/udp`, or their like of IPv6. The first line has names, and no queues. */
const parseQueues = (line: string): Queues | undefined => {
  const [, , , state = '', queues = '', , , , , inode = ''] = line.trim().split(/\s+/)
  const [, sent, received] = /^([0-9A-F]+):([0-9A-F]+)$/.exec(queues) ?? []
  if (sent === undefined || received === undefined) return undefined
  return { state, inode, sent: Number.parseInt(sent, 16), received: Number.parseInt(received, 16) }
}

/**
 * The bytes of a connection (established, or closed by its peer) that no process has: its inode is 0. What it has received is
 * charged to nobody until it is accepted.
 */
export const parseUnacceptedBytes = (line: string): number => {
  const socket = parseQueues(line)
  if (socket?.inode !== '0' || (socket.state !== '01' && socket.state !== '08')) return 0
  return connectionBytes + socket.sent + socket.received
}

/** What a UDP socket has received is bounded by the memory of its sandbox; what it is to send is not. */
export const parseUnsentBytes = (line: string): number => parseQueues(line)?.sent ?? 0

/** Up to `most` and a little more: a list may be long, and is read no further. */
const sumLines = async (path: string, most: number, bytesOf: (line: string) => number): Promise<number> => {
  await using file = await open(path)
  let bytes = 0
  for await (const line of file.readLines()) {
    bytes += bytesOf(line)
    if (bytes > most) break
  }
  return bytes
}

/** A kernel without IPv6 has no tables of it. */
const ofIPv6 = async <T>(read: Promise<T>, none: T): Promise<T> =>
  read.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return none
    throw error
  })

/** What kind of socket of the sandbox with this first process holds too much, if one does. Throws if it has ended. */
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
