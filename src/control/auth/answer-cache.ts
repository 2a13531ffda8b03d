// A cache of what control knows about a credential, such as its user. An entry is used for at most a second.
const keepMilliseconds = 1_000
const keepAtMost = 10_000

type AnswerCache<V> = {
  /**
   * Returns the cached result for `question`, if this result is less than a second old. Otherwise calls `ask` and caches its
   * result.
   */
  get: (question: string, ask: () => Promise<V>) => Promise<V>
  forget: () => void
}

export const keepAnswers = <V>(): AnswerCache<V> => {
  const answers = new Map<string, { answer: V; until: number }>()
  // How often the cache was cleared. If the cache is cleared while `ask` runs, the result of `ask` is returned but not
  // cached.
  let epoch = 0
  return {
    get: async (question, ask) => {
      const kept = answers.get(question)
      if (kept !== undefined && performance.now() < kept.until) return kept.answer
      const asked = epoch
      // The time for which the answer is cached begins before `ask`, because `ask` may read the data at its start.
      const until = performance.now() + keepMilliseconds
      const answer = await ask()
      if (asked === epoch) {
        if (answers.size >= keepAtMost) answers.clear()
        answers.set(question, { answer, until })
      }
      return answer
    },
    forget: () => {
      epoch += 1
      answers.clear()
    },
  }
}
