// Who ran in the kernel while uncharged memory grew. Each growth is shared out among the sandboxes by the time that the kernel
// worked for them meanwhile. That is no proof, so it only orders the suspects.

export class Ledger {
  readonly #seconds = new Map<string, number>()
  readonly #blame = new Map<string, number>()

  /** `secondsOf` answers the time that the kernel has worked for each sandbox since it began. */
  note(grownBytes: number, secondsOf: ReadonlyMap<string, number>) {
    // A sandbox that is not known yet has started since, so all of its time is new.
    const worked = [...secondsOf].map(([id, seconds]) => [id, seconds - (this.#seconds.get(id) ?? 0)] as const)
    const all = worked.reduce((sum, [, seconds]) => sum + seconds, 0)
    for (const [id, seconds] of worked)
      if (grownBytes > 0 && all > 0) this.#blame.set(id, (this.#blame.get(id) ?? 0) + grownBytes * (seconds / all))
    this.#seconds.clear()
    for (const [id, seconds] of secondsOf) this.#seconds.set(id, seconds)
  }

  /** What had grown is free again. */
  forgive() {
    this.#blame.clear()
  }

  remove(sandboxId: string) {
    this.#seconds.delete(sandboxId)
    this.#blame.delete(sandboxId)
  }

  /** With their bytes, most blamed first. */
  suspects(): [sandboxId: string, bytes: number][] {
    return [...this.#blame].filter(([, bytes]) => bytes > 0).sort(([, a], [, b]) => b - a)
  }
}
