// How a database URL is read: libpq's form, so that `?host=/run/alcove` names a unix socket's directory.
import type { Options } from 'postgres'

type Connection = Pick<Options<never>, 'host' | 'port' | 'database' | 'username' | 'password'> & { ssl?: 'require' }

/** The driver's own reading of a URL knows no `host` parameter; everything else in the URL is left to it. */
export const connectionFrom = (databaseUrl: string): { url: string; connection: Connection } => {
  const url = new URL(databaseUrl)
  const socketDirectory = url.searchParams.get('host')
  if (socketDirectory === null) return { url: databaseUrl, connection: {} }
  url.searchParams.delete('host')
  return { url: url.href, connection: { host: socketDirectory, port: Number(url.port || 5432) } }
}

/** URL of another database of this server. */
export const withDatabase = (databaseUrl: string, database: string): string => {
  const url = new URL(databaseUrl)
  url.pathname = `/${encodeURIComponent(database)}`
  return url.href
}
