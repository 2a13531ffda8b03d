// Catches exceptions that one sandbox or one server causes in the proxy for secrets. Uncaught, they would end the proxy, which
// serves all sandboxes.

/**
 * Wraps an event listener: if it throws, `failed` is called. Node throws for some headers and states that a hostile server can
 * cause.
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
