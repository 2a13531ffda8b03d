// The connections of control. Rows come as they are stored, in snake_case; each store reads them into our words.
import postgres from 'postgres'
import { span } from '#src/kit/telemetry/telemetry.ts'
import { connectionFrom } from '#src/postgres/url.ts'
import { createListener, type Listener } from './listener.ts'
import { openReplaceable } from './replaceable.ts'
import { readTextArray, writeTextArray } from './text-array.ts'

type Types = { bigint: number; textArray: string[] }

/** What a store asks its questions with: the pool, or one transaction of it. */
export type Sql = postgres.ISql<Types>
export type Transaction = postgres.TransactionSql<Types>
/** A piece of a question, to be put into another. */
export type Piece = postgres.Fragment

/** A pool of connections. */
type Asking = {
  sql: postgres.Sql<Types>
  /** All or nothing. `work` must ask through the transaction that it is given. */
  transaction: <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>
}

export type Database = Asking & {
  /**
   * Plans each question once for a connection, whatever is asked with it: right for those that find their rows by a key.
   * With the other pool a plan is made for the very values, at least five times for each connection, which of one
   * sandbox takes longer than carrying it out.
   */
  keyed: Asking
  listen: Listener['listen']
  close: () => Promise<void>
}

const pool = {
  max: 8,
  /** Seconds. */
  connect_timeout: 10,
  // The driver (3.4.9) does not keep a connection for a transaction whose BEGIN is the last of as many questions as may wait
  // on it (`execute()` in connection.js): others then ask in the middle of that transaction. So there is no such number.
  max_pipeline: 2 ** 30,
  // A connection is closed by trouble and nothing else: see replaceable.ts.
  idle_timeout: 0,
  max_lifetime: null,
  // Seconds until the next attempt after a lost connection; the driver's own grows to 20 s.
  backoff: (attempt: number) => Math.min(0.05 * 2 ** attempt, 0.5),
}

/** No question of ours takes long; one that does is a mistake or an attack, and its caller has gone. Milliseconds. */
const limits = {
  statement_timeout: 15_000,
  lock_timeout: 5_000,
  idle_in_transaction_session_timeout: 15_000,
}

/** `max` bounds the connections of each of the two pools of this process. */
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
          // Counts and generations stay far below 2^53.
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

/** Throws, in a sentence for the operator that never shows a password, if the database cannot be asked. */
export const checkReachable = async ({ sql }: Asking, databaseUrl: string): Promise<void> => {
  const { connection } = connectionFrom(databaseUrl)
  const { hostname, port } = new URL(databaseUrl)
  const name = connection.host ? `at ${connection.host}` : `of DATABASE_URL (${hostname}:${port || 5432})`
  await sql`select`.catch((error) => {
    // Where a name has several addresses only the parts of the error have words.
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

/** Somebody else has this name. */
export const isDuplicate = (error: unknown): boolean => sqlState(error) === '23505'

/** What it refers to is not there, or is gone by now. */
export const isDangling = (error: unknown): boolean => sqlState(error) === '23503'

/** Two waited for each other, and this one was sent away. */
export const isDeadlock = (error: unknown): boolean => sqlState(error) === '40P01'

/** It waited for others, or took, longer than any question of ours may: lock_not_available, query_canceled. */
export const isOverdue = (error: unknown): boolean => sqlState(error) === '55P03' || sqlState(error) === '57014'

const unreachable: readonly unknown[] = [
  // A socket that PostgreSQL has just made is its own for a moment, and may be asked by more than it lets wait.
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

/** The database is not there now; the same question may succeed in a moment. */
export const isUnreachable = (error: unknown): boolean => unreachable.includes(sqlState(error))
