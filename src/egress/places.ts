// Shares the proxy's connections: at most so many of one sandbox, and of what all have together, at most as many of one
// organization as it leaves free. Each organization always gets a few, whatever the others hold.
import { Budget } from '#src/kit/budget.ts'

const mostOfSandbox = 512
const mostOfAll = { all: 8192, ofFree: 1, sure: 32 }

export class Places {
  readonly #ofSandboxes = new Budget({ each: mostOfSandbox })
  readonly #ofOwners = new Budget(mostOfAll)

  /**
   * Takes a place for a connection of a sandbox, which is named by its address. Returns the function that gives the place
   * back, or undefined if there is no place.
   */
  take(address: string, owner: string): (() => void) | undefined {
    if (!this.#ofSandboxes.take(address)) return undefined
    if (!this.#ofOwners.take(owner)) {
      this.#ofSandboxes.give(address)
      return undefined
    }
    return () => {
      this.#ofSandboxes.give(address)
      this.#ofOwners.give(owner)
    }
  }
}
