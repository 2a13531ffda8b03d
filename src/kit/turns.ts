// Leaves others their turns on our one thread. What a stranger sends may cost much more to read than it costs to send, and how
// much is known afterwards only: whoever took long waits for as long, and all who did wait one after the other, so that
// together they take half of the time at most.

/** Ordinary pieces of work take a tenth of it. */
export const longMs = 2

const waiting: { tookMs: number; goOn: () => void }[] = []

const letOn = () => {
  const [first] = waiting
  if (first === undefined) return
  setTimeout(() => {
    waiting.shift()
    letOn()
    first.goOn()
  }, first.tookMs)
}

/** Each waits once at a time. */
export const goOnInTurn = (tookMs: number, goOn: () => void): void => {
  waiting.push({ tookMs, goOn })
  if (waiting.length === 1) letOn()
}
