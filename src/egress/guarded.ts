// Keeps what one sandbox or one server causes from ending the proxy of all others.

/** A listener whose exception only calls `failed`. Node throws for headers and states that a hostile server can send. */
export const guarded =
  <Given extends unknown[]>(listen: (...given: Given) => void, failed: () => void) =>
  (...given: Given): void => {
    try {
      listen(...given)
    } catch {
      failed()
    }
  }
