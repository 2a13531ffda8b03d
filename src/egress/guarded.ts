// Catches exceptions that one sandbox or server causes in the proxy for secrets. Uncaught exceptions would end the proxy, which all
// sandboxes use.

/**
 * Returns a listener that calls `failed` if `listen` throws. A hostile server can make Node throw, for example with certain
 * headers.
 */
export const guarded =
  <Given extends unknown[]>(listen: (...given: Given) => void, failed: () => void) =>
  (...given: Given): void => {
    try {
      listen(...given)
    } catch {
      failed()
    }
  }
