// Shows which sandboxes to examine first when uncharged memory grows. Each sandbox is blamed for a part of the growth, by the CPU
// time that the kernel spent for this sandbox meanwhile.

export class Ledger {
  readonly #seconds = new Map<string, number>()
  readonly #blame = new Map<string, number>()

  /**
   * Blames sandboxes for the memory growth since the last call. `secondsOf`: CPU time that the kernel has spent for each sandbox.
   */
  note(grownBytes: number, secondsOf: ReadonlyMap<string, number>) {
    // A sandbox without a value in `#seconds` has started since the last call, so its whole CPU time counts.
    const worked = [...secondsOf].map(([id, seconds]) => [id, seconds - (this.#seconds.get(id) ?? 0)] as const)
    const all = worked.reduce((sum, [, seconds]) => sum + seconds, 0)
    for (const [id, seconds] of worked)
      if (grownBytes > 0 && all > 0) this.#blame.set(id, (this.#blame.get(id) ?? 0) + grownBytes * (seconds / all))
    this.#seconds.clear()
    for (const [id, seconds] of secondsOf) this.#seconds.set(id, seconds)
  }

  /**
   * Forgets which sandboxes were blamed. Called when uncharged memory has shrunk below the value from which its growth is measured.
   */
  forgive() {
    this.#blame.clear()
  }

  remove(sandboxId: string) {
    this.#seconds.delete(sandboxId)
    this.#blame.delete(sandboxId)
  }

  /** Returns the sandboxes with the bytes of growth that they are suspected of, the most suspected first. */
  suspects(): [sandboxId: string, bytes: number][] {
    return [...this.#blame].filter(([, bytes]) => bytes > 0).sort(([, a], [, b]) => b - a)
  }
}
