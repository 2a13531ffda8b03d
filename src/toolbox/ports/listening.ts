// Reads which TCP ports have a listener from what the kernel says in /proc/net/tcp and tcp6 (proc(5)).

const listenState = '0A'

/** Far more than there are ports; the program that prints the table is the sandbox's, and may print anything. */
const mostLines = 200_000

/** Ascending, each once. Lines that are no sockets, such as the heads of the tables, count for nothing. */
export const listeningPorts = (table: string): number[] => {
  const ports = new Set<number>()
  for (const line of table.split('\n', mostLines)) {
    const [, hex, state] = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /.exec(line) ?? []
    if (hex !== undefined && state === listenState) ports.add(Number.parseInt(hex, 16))
  }
  return [...ports].sort((a, b) => a - b)
}
