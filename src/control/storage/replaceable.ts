// A pool of database connections that is replaced after it lost a connection. In the driver (postgres 3.4.9), a connection that was
// lost during a write connects again, but never writes again: `closed()` in connection.js does not clear the write timer. The
// queries of such a connection would wait forever. So new queries go to a new pool, and running queries may finish within
// `drainSeconds`.
/** The only method of the driver's connection pool that this file calls. Callers of this file use the pool's other methods. */
type Pool = { end: (options: { timeout: number }) => Promise<void> } & object

type Replaceable<P> = { sql: P; close: (seconds: number) => Promise<void> }

/**
 * Seconds that running queries of a replaced connection pool may still take. After that they fail with the error of a lost
 * connection.
 */
const drainSeconds = 5

/**
 * Opens a pool of database connections. Whenever the pool is replaced, calls `onLost`. Callers use the returned `sql` like a pool
 * of the driver.
 */
export const openReplaceable = <P extends Pool>(
  open: (onclose: () => void) => P,
  onLost: () => void = () => {},
): Replaceable<P> => {
  let isClosed = false
  const openNext = (): P => {
    const pool = open(() => {
      if (isClosed || pool !== current) return
      current = openNext()
      pool.end({ timeout: drainSeconds }).catch(() => {})
      onLost()
    })
    return pool
  }
  let current = openNext()
  // The target of this JavaScript `Proxy` is never called. The target is a function so that the `Proxy` can be called like a
  // function.
  const sql = new Proxy((() => {}) as unknown as P, {
    apply: (_target, _self, args) => Reflect.apply(current as unknown as () => unknown, undefined, args),
    get: (_target, name) => Reflect.get(current, name),
  })
  return {
    sql,
    close: async (seconds) => {
      isClosed = true
      await current.end({ timeout: seconds })
    },
  }
}
