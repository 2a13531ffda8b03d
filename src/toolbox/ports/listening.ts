// Parses /proc/net/tcp and tcp6 (proc(5)) for TCP ports with a listener.

const listenState = '0A'

/**
 * Maximum number of lines, far more than there are ports. The program that prints them belongs to the sandbox, and may print
 * anything.
 */
const mostLines = 200_000

/** Finds the listening ports, sorted and without duplicates. Skips lines that are not sockets, such as headings. */
export const listeningPorts = (table: string): number[] => {
  const ports = new Set<number>()
  for (const line of table.split('\n', mostLines)) {
    const [, hex, state] = /^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /.exec(line) ?? []
    if (hex !== undefined && state === listenState) ports.add(Number.parseInt(hex, 16))
  }
  return [...ports].sort((a, b) => a - b)
}
