// Answers of the kernel that wait in netlink sockets count as nobody's memory: by a few thousand of such sockets a sandbox holds
// gigabytes that no limit of it knows. No program leaves that much unread, so who does is ended before the host has no memory.
//
// Once a second the host's own count of such memory is read. Only where it has grown are the sandboxes looked at: the list of
// netlink sockets of each, which for most is a few lines.
import { open, readFile } from 'node:fs/promises'
import type { Logger } from '#src/kit/log.ts'
import { repeat } from '#src/kit/repeat.ts'
import type { Init } from './processes.ts'

const MiB = 1024 ** 2
const everySeconds = 1
const standardBounds = {
  /** Of the host's kernel, since the last look. */
  grownBytes: 128 * MiB,
  /** In the netlink sockets of one sandbox. */
  mostBytes: 64 * MiB,
}
/** So many sandboxes at a stretch never hold up a request for long. */
const atOnce = 50

/** `SUnreclaim` of `/proc/meminfo` (proc(5)), in bytes. */
export const parseKernelBytes = (meminfo: string): number =>
  Number(/^SUnreclaim:\s+(\d+) kB$/m.exec(meminfo)?.[1] ?? 0) * 1024

/** What waits to be read in the socket of a line of `net/netlink`: its fifth column, in bytes. The first line has names. */
export const parseWaiting = (line: string): number => Number(line.trim().split(/\s+/)[4]) || 0

/** Up to `mostBytes` and a little more: a list may be long, and is read no further. */
const waitingBytes = async (pid: number, mostBytes: number): Promise<number> => {
  await using file = await open(`/proc/${pid}/net/netlink`)
  let bytes = 0
  for await (const line of file.readLines()) {
    bytes += parseWaiting(line)
    if (bytes > mostBytes) break
  }
  return bytes
}

type NetlinkWatchParts = {
  /** Has more than it may; told again at the next look if it still has. */
  onTooMuch: (sandboxId: string) => void
  log: Logger
  bounds?: typeof standardBounds
}

export class NetlinkWatch {
  readonly #watched = new Map<string, Init>()
  readonly #parts: Required<NetlinkWatchParts>
  readonly #stop: () => void
  #before = Number.POSITIVE_INFINITY

  constructor(parts: NetlinkWatchParts) {
    this.#parts = { bounds: standardBounds, ...parts }
    this.#stop = repeat(
      everySeconds,
      () => this.look(),
      (err) => parts.log.warn({ err }, 'netlink sockets could not be looked at'),
    )
  }

  add(sandboxId: string, init: Init) {
    this.#watched.set(sandboxId, init)
  }

  remove(sandboxId: string) {
    this.#watched.delete(sandboxId)
  }

  close() {
    this.#stop()
    this.#watched.clear()
  }

  async look(): Promise<void> {
    const { grownBytes, mostBytes } = this.#parts.bounds
    const now = parseKernelBytes(await readFile('/proc/meminfo', 'utf8'))
    if (now < this.#before + grownBytes) {
      this.#before = Math.min(this.#before, now)
      return
    }
    let looked = 0
    let isFound = false
    for (const [sandboxId, { pid }] of [...this.#watched]) {
      if (++looked % atOnce === 0) await new Promise(setImmediate)
      try {
        if ((await waitingBytes(pid, mostBytes)) <= mostBytes) continue
      } catch {
        // It has ended.
        continue
      }
      isFound = true
      this.#parts.onTooMuch(sandboxId)
    }
    if (!isFound) this.#before = now
  }
}
