// Orders the sandboxes by suspicion. Each growth of uncharged memory is divided among the sandboxes, by the time that the kernel
// worked for each of them meanwhile. This is a suspicion and no proof.

export class Ledger {
  readonly #seconds = new Map<string, number>()
  readonly #blame = new Map<string, number>()

  /**
   * Divides a growth among the sandboxes. `secondsOf`: total time that the kernel has worked for each sandbox since the sandbox
   * started.
   */
  note(grownBytes: number, secondsOf: ReadonlyMap<string, number>) {
    // A sandbox that this method sees for the first time has started since the last call, so all of its time counts.
    const worked = [...secondsOf].map(([id, seconds]) => [id, seconds - (this.#seconds.get(id) ?? 0)] as const)
    const all = worked.reduce((sum, [, seconds]) => sum + seconds, 0)
    for (const [id, seconds] of worked)
      if (grownBytes > 0 && all > 0) this.#blame.set(id, (this.#blame.get(id) ?? 0) + grownBytes * (seconds / all))
    this.#seconds.clear()
    for (const [id, seconds] of secondsOf) this.#seconds.set(id, seconds)
  }

  /** Forgets all growth so far. Called when the uncharged memory has been freed again. */
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
