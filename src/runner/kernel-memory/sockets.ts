// Kernel memory that is charged to nobody and that the kernel's own tables of sockets tell of, for each sandbox: messages in
// netlink sockets, and TCP connections that nobody has accepted.
import { open, readFile } from 'node:fs/promises'

/** A program may well have some; none has this much. */
export const mostSocketBytes = 64 * 1024 ** 2

/** Of one connection that waits to be accepted: the socket and its request, which the kernel makes on behalf of nobody. */
const connectionBytes = 3 * 1024

/** What fewer sockets may hold is not worth a look at each: reading their table walks that of the whole host. */
const fewSockets = 64

/**
 * The bytes of a line of `net/netlink`: what waits to be read (`Rmem`) and what was sent and is still kept, such as a long
 * question whose answer nobody reads (`Wmem`). The first line has names.
 */
export const parseNetlinkBytes = (line: string): number => {
  const [, , , , received, sent] = line.trim().split(/\s+/)
  return (Number(received) || 0) + (Number(sent) || 0)
}

/** How many TCP sockets there are: `net/sockstat`. Tells of one network namespace, and is cheap. */
export const parseTcpSockets = (sockstat: string): number => Number(/^TCP: inuse (\d+)/m.exec(sockstat)?.[1] ?? 0)

/**
 * The bytes of a line of `net/tcp` that is a connection (established, or closed by its peer) that no process has: its inode is 0.
 * What it has received is charged to nobody until it is accepted.
 */
export const parseUnacceptedBytes = (line: string): number => {
  const [, , , state, queues = '', , , , , inode] = line.trim().split(/\s+/)
  if (inode !== '0' || (state !== '01' && state !== '08')) return 0
  const [sent = '0', received = '0'] = queues.split(':')
  return connectionBytes + Number.parseInt(sent, 16) + Number.parseInt(received, 16)
}

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

/** What kind of socket of the sandbox with this first process holds too much, if one does. Throws if it has ended. */
export const findFullSockets = async (
  pid: number,
  most = mostSocketBytes,
): Promise<'netlink sockets' | 'unaccepted connections' | undefined> => {
  const table = (name: string) => `/proc/${pid}/net/${name}`
  if ((await sumLines(table('netlink'), most, parseNetlinkBytes)) > most) return 'netlink sockets'
  if (parseTcpSockets(await readFile(table('sockstat'), 'utf8')) <= fewSockets) return undefined
  return (await sumLines(table('tcp'), most, parseUnacceptedBytes)) > most ? 'unaccepted connections' : undefined
}
