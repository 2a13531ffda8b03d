/**
 * Does something again and again, each time `seconds` after the time before has ended; never, if they are 0. Answers how
 * to stop, which does not wait for what goes on at that moment.
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
