// Control's connections to the database. Rows have snake_case names, which each module's `store.ts` converts.
import postgres from 'postgres'
import { span } from '#src/kit/telemetry/telemetry.ts'
import { connectionFrom } from '#src/postgres/url.ts'
import { createListener, type Listener } from './listener.ts'
import { openReplaceable } from './replaceable.ts'
import { readTextArray, writeTextArray } from './text-array.ts'

type Types = { bigint: number; textArray: string[] }

/** Runs queries: either on any connection of the pool, or inside one transaction. */
export type Sql = postgres.ISql<Types>
export type Transaction = postgres.TransactionSql<Types>
/** A fragment of SQL to insert into a query. */
export type Piece = postgres.Fragment

/** A pool of connections: `sql` runs single queries, `transaction` runs transactions. */
type Asking = {
  sql: postgres.Sql<Types>
  /** Runs `work` in one transaction. `work` must send all its queries through the given transaction. */
  transaction: <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>
}

export type Database = Asking & {
  /**
   * A second pool, where PostgreSQL plans each query only once per connection, for all values. Use this pool for queries that find
   * rows by a key, because planning them takes longer than running them. In the pool `sql`, PostgreSQL plans for the actual values,
   * at least the first five times per connection.
   */
  keyed: Asking
  listen: Listener['listen']
  close: () => Promise<void>
}

const pool = {
  max: 8,
  /** Connection timeout in seconds. */
  connect_timeout: 10,
  // The limit of waiting queries per connection is too high to be reached. At a limit, the driver (3.4.9) would run other callers'
  // queries in a transaction (`execute()` in connection.js).
  max_pipeline: 2 ** 30,
  // Connections are closed only after a failure, never because of age or idleness: see `replaceable.ts`.
  idle_timeout: 0,
  max_lifetime: null,
  // Seconds before a lost connection is opened again, at most 0.5. The driver's default grows to 20 s.
  backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 0.5),
}

/**
 * Timeouts in milliseconds. None of our queries is slow, so a query that exceeds these limits is a bug or an attack.
 */
const limits = {
  statement_timeout: 15_000,
  lock_timeout: 5_000,
  idle_in_transaction_session_timeout: 15_000,
}

/** Opens the database. `max`: maximum number of connections in each of the two pools, `sql` and `keyed`. */
export const openDatabase = (databaseUrl: string, { max = pool.max }: { max?: number } = {}): Database => {
  const { url, connection } = connectionFrom(databaseUrl)
  const open = (settings: object) =>
    openReplaceable((onclose) =>
      postgres(url, {
        ...connection,
        ...pool,
        max,
        connection: { application_name: 'alcove-control', TimeZone: 'UTC', ...limits, ...settings },
        transform: { undefined: null },
        fetch_types: false,
        types: {
          textArray: { to: 1009, from: [1009], serialize: writeTextArray, parse: readTextArray },
          // Reads bigint as a number, because counts and generations stay far below 2^53.
          bigint: {
            to: 20,
            from: [20],
            serialize: (value: number) => String(value),
            parse: (text: string) => Number(text),
          },
        },
        onnotice: () => {},
        onclose,
      }),
    )
  const pools = [open({}), open({ plan_cache_mode: 'force_generic_plan' })] as const
  const [any, keyed] = pools.map(({ sql }) => asking(sql)) as [Asking, Asking]
  const listener = createListener(url, connection)
  return {
    ...any,
    keyed,
    listen: listener.listen,
    close: async () => {
      await Promise.all([listener.close(), ...pools.map((each) => each.close(3))])
    },
  }
}

/** Throws if the database cannot be reached. The message is for the operator and never contains the password. */
export const checkReachable = async ({ sql }: Asking, databaseUrl: string): Promise<void> => {
  const { connection } = connectionFrom(databaseUrl)
  const { hostname, port } = new URL(databaseUrl)
  const name = connection.host ? `at ${connection.host}` : `of DATABASE_URL (${hostname}:${port || 5432})`
  await sql`select`.catch((error) => {
    // For a host name with several addresses, only the inner errors, one for each address, have a message.
    const why = error.message || error.errors?.[0]?.message || error.code
    throw new Error(`the database ${name} cannot be reached: ${why}`, { cause: error })
  })
}

const asking = (sql: Asking['sql']): Asking => ({
  sql,
  transaction: (work) =>
    span('transaction', { kind: 'client', attributes: { 'db.system.name': 'postgresql' } }, () =>
      sql.begin(work),
    ) as Promise<Awaited<ReturnType<typeof work>>>,
})

const sqlState = (error: unknown) => (error as { code?: unknown } | null)?.code

/** Returns whether a unique constraint failed: the value is in use. */
export const isDuplicate = (error: unknown): boolean => sqlState(error) === '23505'

/** Returns whether a foreign key failed: the referenced row does not exist, or was deleted meanwhile. */
export const isDangling = (error: unknown): boolean => sqlState(error) === '23503'

/** Returns whether PostgreSQL aborted the transaction because of a deadlock between two transactions. */
export const isDeadlock = (error: unknown): boolean => sqlState(error) === '40P01'

/** Returns whether the query exceeded `lock_timeout` or `statement_timeout` (lock_not_available or query_canceled). */
export const isOverdue = (error: unknown): boolean => sqlState(error) === '55P03' || sqlState(error) === '57014'

const unreachable: readonly unknown[] = [
  // EACCES: PostgreSQL is starting, and other users cannot open its socket yet. EAGAIN: the socket's queue of connections is full.
  'EACCES',
  'EAGAIN',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT', // no unix socket
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  '57P01', // admin_shutdown
  '57P02', // crash_shutdown
  '57P03', // cannot_connect_now
  '53300', // too_many_connections
]

/** Returns whether the error means that the database is unreachable. A retry may succeed in a moment. */
export const isUnreachable = (error: unknown): boolean => unreachable.includes(sqlState(error))
