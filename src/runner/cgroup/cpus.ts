// Chooses on which processors each sandbox runs: as many as its `cpu`, rounded up, because many programs start a thread for
// each. A new sandbox gets the processors that are assigned least. A resized sandbox keeps its processors as far as possible.
import { readFileSync } from 'node:fs'

/** Parses a kernel list such as `0-3,8` (cpuset(7), "List format"). */
export const parseCpuList = (text: string): number[] =>
  text
    .trim()
    .split(',')
    .filter(Boolean)
    .flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, index) => first + index)
    })

export const writeCpuList = (cpus: readonly number[]): string => {
  const ranges: [number, number][] = []
  for (const cpu of [...cpus].sort((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last && last[1] === cpu - 1) last[1] = cpu
    else ranges.push([cpu, cpu])
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',')
}

/** Returns the processors that this process may use. */
export const hostCpus = (): number[] => {
  const status = readFileSync('/proc/self/status', 'utf8')
  return parseCpuList(/^Cpus_allowed_list:\s*(.+)$/m.exec(status)?.[1] ?? '0')
}

type CpuShare = { cpus: readonly number[]; each: number }

export class CpuSpread {
  /** By processor number: the sum of the `cpu` shares that sandboxes have of this processor. */
  readonly #promised: Map<number, number>
  readonly #held = new Map<string, CpuShare>()

  constructor(cpus: readonly number[]) {
    this.#promised = new Map(cpus.map((cpu) => [cpu, 0]))
  }

  /** Chooses the processors for a sandbox with this `cpu`: all processors, if the host has fewer than `cpu`. */
  take(sandboxId: string, cpu: number): number[] {
    const before = this.#held.get(sandboxId)?.cpus ?? []
    this.release(sandboxId)
    const count = Math.min(Math.max(1, Math.ceil(cpu)), this.#promised.size)
    const order = [...this.#promised].sort(
      ([a, promisedA], [b, promisedB]) =>
        Number(before.includes(b)) - Number(before.includes(a)) || promisedA - promisedB || a - b,
    )
    const cpus = order
      .slice(0, count)
      .map(([each]) => each)
      .sort((a, b) => a - b)
    this.adopt(sandboxId, cpu, cpus)
    return cpus
  }

  /** Records on which processors a sandbox is already running, for a sandbox that an earlier runner started. */
  adopt(sandboxId: string, cpu: number, cpus: readonly number[]): void {
    this.release(sandboxId)
    const held = { cpus, each: cpu / Math.max(1, cpus.length) }
    this.#held.set(sandboxId, held)
    this.#add(held, 1)
  }

  release(sandboxId: string): void {
    const held = this.#held.get(sandboxId)
    if (held === undefined) return
    this.#held.delete(sandboxId)
    this.#add(held, -1)
  }

  #add({ cpus, each }: CpuShare, sign: 1 | -1) {
    for (const cpu of cpus) {
      const promised = this.#promised.get(cpu)
      // If the host no longer has this processor, the share that the sandbox has of it is not counted.
      if (promised !== undefined) this.#promised.set(cpu, promised + sign * each)
    }
  }
}
