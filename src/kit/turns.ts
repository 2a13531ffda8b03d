// Shares our one thread fairly. Parsing untrusted data may cost far more than sending it, and the cost is known only
// afterwards. A caller whose work took t ms waits t ms, and all such callers wait one after the other. So together they use
// at most half of the thread's time.

/** Work that takes at least this long has to wait. Ordinary work takes a tenth of it. */
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

/** Calls `goOn` after waiting `tookMs` in the queue. A caller must not queue again before its `goOn` was called. */
export const goOnInTurn = (tookMs: number, goOn: () => void): void => {
  waiting.push({ tookMs, goOn })
  if (waiting.length === 1) letOn()
}
