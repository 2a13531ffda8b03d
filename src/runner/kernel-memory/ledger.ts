// Orders the suspects. Each growth of uncharged memory is divided among the sandboxes by the time that the kernel worked for
// them meanwhile. The order is only a suspicion, no proof.

export class Ledger {
  readonly #seconds = new Map<string, number>()
  readonly #blame = new Map<string, number>()

  /** `secondsOf`: total time that the kernel has worked for each sandbox since it started. */
  note(grownBytes: number, secondsOf: ReadonlyMap<string, number>) {
    // A sandbox without an earlier note has started since the last call, so all of its time counts.
    const worked = [...secondsOf].map(([id, seconds]) => [id, seconds - (this.#seconds.get(id) ?? 0)] as const)
    const all = worked.reduce((sum, [, seconds]) => sum + seconds, 0)
    for (const [id, seconds] of worked)
      if (grownBytes > 0 && all > 0) this.#blame.set(id, (this.#blame.get(id) ?? 0) + grownBytes * (seconds / all))
    this.#seconds.clear()
    for (const [id, seconds] of secondsOf) this.#seconds.set(id, seconds)
  }

  /** Clears all blame. Call this when the uncharged memory has been freed again. */
  forgive() {
    this.#blame.clear()
  }

  remove(sandboxId: string) {
    this.#seconds.delete(sandboxId)
    this.#blame.delete(sandboxId)
  }

  /** Returns sandboxes with their bytes of blame, most blamed first. */
  suspects(): [sandboxId: string, bytes: number][] {
    return [...this.#blame].filter(([, bytes]) => bytes > 0).sort(([, a], [, b]) => b - a)
  }
}
