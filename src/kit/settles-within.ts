/**
 * Returns whether the promise resolves within `ms`. The result is false if it rejects, takes longer, or if the signal
 * `hurry` aborts before it resolves.
 */
export const settlesWithin = (promise: Promise<unknown>, ms: number, hurry?: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const giveUp = () => settle(false)
    const timer = setTimeout(giveUp, ms)
    const settle = (value: boolean) => {
      clearTimeout(timer)
      hurry?.removeEventListener('abort', giveUp)
      resolve(value)
    }
    promise.then(() => settle(true), giveUp)
    if (hurry?.aborted) giveUp()
    else hurry?.addEventListener('abort', giveUp)
  })
