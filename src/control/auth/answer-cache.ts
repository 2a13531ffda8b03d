// A cache of answers about credentials. An answer lives for at most a second, and all can be dropped at once.
const keepMilliseconds = 1_000
const keepAtMost = 10_000

type AnswerCache<V> = {
  /** Returns the answer of the last second to this question, or calls `ask`. */
  get: (question: string, ask: () => Promise<V>) => Promise<V>
  forget: () => void
}

export const keepAnswers = <V>(): AnswerCache<V> => {
  const answers = new Map<string, { answer: V; until: number }>()
  // Number of times that the cache was cleared. An answer that was requested before a clearing is used once but not
  // cached.
  let epoch = 0
  return {
    get: async (question, ask) => {
      const kept = answers.get(question)
      if (kept !== undefined && performance.now() < kept.until) return kept.answer
      const asked = epoch
      // The cache's second begins when the question is asked, because the answer may be as old as that.
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
