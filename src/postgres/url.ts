// Reads a database URL in the form of libpq, PostgreSQL's C library. In this form, `?host=/run/alcove` names the
// directory of a unix socket.
import type { Options } from 'postgres'

type Connection = Pick<Options<never>, 'host' | 'port' | 'database' | 'username' | 'password'> & { ssl?: 'require' }

/** Returns the URL without the parameter `host`, which the driver does not support, and the options that replace it. */
export const connectionFrom = (databaseUrl: string): { url: string; connection: Connection } => {
  const url = new URL(databaseUrl)
  const socketDirectory = url.searchParams.get('host')
  if (socketDirectory === null) return { url: databaseUrl, connection: {} }
  url.searchParams.delete('host')
  return { url: url.href, connection: { host: socketDirectory, port: Number(url.port || 5432) } }
}

/** Returns the URL of the database named `database` on the same server. */
export const withDatabase = (databaseUrl: string, database: string): string => {
  const url = new URL(databaseUrl)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}
