// Reads how much memory a sandbox's sockets use outside of every limit. Netlink sockets with unread messages, TCP connections that
// were not accepted, and unsent datagrams (`MSG_MORE`) use such memory.
import { open, readFile } from 'node:fs/promises'

export type FullSockets = 'netlink sockets' | 'unaccepted connections' | 'unsent datagrams'

/** Maximum number of bytes that a sandbox's sockets may use outside of every limit. Ordinary programs need far less. */
export const mostSocketBytes = 64 * 1024 ** 2

/**
 * Kernel memory of an unaccepted connection, in bytes: a socket and a connection request. No control group is charged for this
 * memory.
 */
const connectionBytes = 3 * 1024

/**
 * A sandbox with at most this many TCP and UDP sockets cannot exceed `mostSocketBytes`, so the long tables of its sockets are not
 * read. At most about half of these sockets are unaccepted connections, each with at most 8 MiB (twice `net.core.rmem_max`).
 */
const fewSockets = 16

/**
 * Parses a line of `net/netlink`. Returns the bytes of unread messages (`Rmem`) and of sent data that the kernel still stores
 * (`Wmem`). The line with the names of the columns counts as 0.
 */
export const parseNetlinkBytes = (line: string): number => {
  const [, , , , received, sent] = line.trim().split(/\s+/)
  return (Number(received) || 0) + (Number(sent) || 0)
}

/**
 * Parses the number of TCP and UDP sockets of a network namespace from `net/sockstat` or `net/sockstat6`. Reading these files
 * takes little time.
 */
export const parseSocketCount = (sockstat: string): number =>
  [...sockstat.matchAll(/^(?:TCP|UDP)6?: inuse (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0)

type Queues = { state: string; inode: string; sent: number; received: number }

/**
 * Parses a line of `net/tcp`, `net/udp`, `net/tcp6` or `net/udp6`. Undefined for the first line, which has the names of the
 * columns.
 */
const parseQueues = (line: string): Queues | undefined => {
  const [, , , state = '', queues = '', , , , , inode = ''] = line.trim().split(/\s+/)
  const [, sent, received] = /^([0-9A-F]+):([0-9A-F]+)$/.exec(queues) ?? []
  if (sent === undefined || received === undefined) return undefined
  return { state, inode, sent: Number.parseInt(sent, 16), received: Number.parseInt(received, 16) }
}

/**
 * Returns the bytes of a TCP connection that no process has accepted. These bytes are charged to no control group. Such a
 * connection has the inode 0, and the state 01 (established) or 08 (closed by the peer). Returns 0 for other lines of the table.
 */
export const parseUnacceptedBytes = (line: string): number => {
  const socket = parseQueues(line)
  if (socket?.inode !== '0' || (socket.state !== '01' && socket.state !== '08')) return 0
  return connectionBytes + socket.sent + socket.received
}

/** Returns how many bytes a UDP socket has not sent yet. Received bytes do not count, because they are charged to the sandbox. */
export const parseUnsentBytes = (line: string): number => parseQueues(line)?.sent ?? 0

/** Adds up the bytes of all lines of a file. Stops when the sum exceeds `most`, because the file may be long. */
const sumLines = async (path: string, most: number, bytesOf: (line: string) => number): Promise<number> => {
  await using file = await open(path)
  let bytes = 0
  for await (const line of file.readLines()) {
    bytes += bytesOf(line)
    if (bytes > most) break
  }
  return bytes
}

/** Returns the result of `read`, or `none` if there is no such file, as on a kernel without IPv6. */
const ofIPv6 = async <T>(read: Promise<T>, none: T): Promise<T> =>
  read.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return none
    throw error
  })

/**
 * Returns which kind of socket takes more than `most` bytes in a sandbox. `pid`: the sandbox's first process. Throws if the sandbox
 * has ended.
 */
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
