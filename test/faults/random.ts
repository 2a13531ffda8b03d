/** Generates pseudo-random numbers. Equal seeds give equal sequences of numbers (mulberry32, by Tommy Ettinger; public domain). */
export type Random = {
  /** Returns a number that is at least 0 and less than 1. */
  next: () => number
  /** Returns a whole number from 0 to `below` - 1. */
  below: (below: number) => number
  /** Returns one of the choices at random. A choice with a larger weight is returned more often. */
  pick: <T>(choices: readonly (readonly [weight: number, choice: T])[]) => T
}

export const randomFrom = (seed: number): Random => {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = state
    bits = Math.imul(bits ^ (bits >>> 15), bits | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    below: (below) => Math.floor(next() * below),
    pick: (choices) => {
      let left = next() * choices.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, choice] of choices) {
        left -= weight
        if (left < 0) return choice
      }
      throw new Error('nothing to pick from')
    },
  }
}
