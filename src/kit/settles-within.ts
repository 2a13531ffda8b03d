/** Whether the promise resolves within `ms`. False if it rejects, or if `hurry` aborts first. */
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
