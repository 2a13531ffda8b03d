/**
 * Repeats `work`, each time `seconds` after the previous run has ended. With 0 seconds, `work` is never run. Returns a
 * function that stops the repetition; it does not wait for a running `work`.
 */
export const repeat = (
  seconds: number,
  work: () => Promise<unknown>,
  onFailure: (error: unknown) => void,
): (() => void) => {
  let isStopped = seconds === 0
  let timer: NodeJS.Timeout | undefined
  const later = () => {
    if (isStopped) return
    timer = setTimeout(() => {
      work().catch(onFailure).finally(later)
    }, seconds * 1000)
  }
  later()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
