/**
 * Runs `work` repeatedly, each time `seconds` after the end of the run before. If `seconds` is 0, `work` never runs. Returns a
 * function that stops the repetition without waiting for a run that has begun.
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
