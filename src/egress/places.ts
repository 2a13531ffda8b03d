// Limits the connections to the proxy for secrets, per sandbox and per organization. Each organization always gets a few.
import { Budget } from '#src/kit/budget.ts'

const mostOfSandbox = 512
const mostOfAll = { all: 8192, ofFree: 1, sure: 32 }

export class Places {
  readonly #ofSandboxes = new Budget({ each: mostOfSandbox })
  readonly #ofOwners = new Budget(mostOfAll)

  /**
   * Counts a new connection of the sandbox at this address. Returns the function to call at the connection's end, or undefined if
   * the connection must be refused.
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
