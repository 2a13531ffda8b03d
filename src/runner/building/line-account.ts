// Computes the disk space that cached lines take at most: the bytes of all lines, and of their base images. A base image of
// several lines counts once.

type OnBase = { base: string }

export class LineAccount {
  readonly #baseSizes: ReadonlyMap<string, number>
  readonly #linesOf = new Map<string, number>()
  #lines = 0
  bytes = 0

  constructor(baseSizes: ReadonlyMap<string, number>) {
    this.#baseSizes = baseSizes
  }

  add({ base }: OnBase, bytes: number): void {
    const others = this.#linesOf.get(base) ?? 0
    this.#linesOf.set(base, others + 1)
    this.#lines += 1
    this.bytes += bytes + (others === 0 ? (this.#baseSizes.get(base) ?? 0) : 0)
  }

  remove({ base }: OnBase, bytes: number): void {
    const others = (this.#linesOf.get(base) ?? 1) - 1
    this.#linesOf.set(base, others)
    this.#lines -= 1
    this.bytes -= bytes + (others === 0 ? (this.#baseSizes.get(base) ?? 0) : 0)
  }

  isOver(mostLines: number, mostBytes: number): boolean {
    return this.#lines > mostLines || this.bytes > mostBytes
  }
}
