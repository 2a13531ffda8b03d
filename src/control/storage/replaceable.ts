// Puts one pool of connections after another behind one name. A connection of the driver that was lost in the middle of a write
// never writes again (postgres 3.4.9, `closed()` in connection.js keeps its write timer), and every call handed to it waits
// for ever. So a pool that has lost a connection takes no more calls: those it has may end, for a while, and the next go to
// a new pool.
/** What is used of the driver's pool here; callers see all of it. */
type Pool = { end: (options: { timeout: number }) => Promise<void> } & object

type Replaceable<P> = { sql: P; close: (seconds: number) => Promise<void> }

/** How long calls of a replaced pool may still take, in seconds; then they fail as if the server had gone. */
const drainSeconds = 5

/**
 * `open` makes a pool whose `onclose` is the function that it is given. `onLost` hears of every replacement.
 * What `sql` answers is used as the driver's own.
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
  // The target is callable only so that the proxy is; nothing ever reaches it.
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
