// Reads from a request whether it is for a preview, and of what. A preview has a host name of its own,
// `{port}-{sandbox}.<proxy host>`, or, where there are no such names, a path: `/preview/{sandbox}/{port}/…`.
// `{sandbox}` is an id, a name, or the token of a signed URL.
import { Problem } from '#src/problems.ts'
import { reservedPorts } from '#src/wire/access.ts'
import { decoded, takeFromQuery } from '../query.ts'
import { authKey, longestName, longestUrl } from '../target.ts'

export type PreviewAddress = {
  /** As it stands in the address. */
  sandbox: string
  port: number
  /** What the caller called us, with the port; empty in a request that names no host. */
  host: string
  /** What comes before the server's own paths; empty where it has a host name of its own. */
  prefix: string
  /** The server's own path, which begins with a slash unless there is nothing, and its query without the fields that are ours. */
  path: string
  query: string
  queryToken: string | undefined
  /** The visitor pressed the button of the warning page. */
  isAcceptance: boolean
}

export const acceptKey = 'ALCOVE_ACCEPT_PREVIEW'

const readPort = (digits: string): number => {
  const port = Number(digits)
  if (port < 1 || port > 65_535) throw new Problem('not_found', `There is no port ${digits}.`)
  if (reservedPorts.includes(port)) throw new Problem('forbidden', `Port ${port} is reserved; it has no preview.`)
  return port
}

/** The label of a preview's own host name, and its port. */
const labelOf = (host: string, ownHost: string) =>
  host === ownHost ? [] : (/^(\d{1,5})-([a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)\.[^@/\\]+$/.exec(host) ?? [])

/** Whether the request is for a preview, which need not be one that can be. */
export const isForPreview = (url: string, hostHeader: string | undefined, ownHost: string): boolean =>
  url.startsWith('/preview/') || labelOf((hostHeader ?? '').toLowerCase(), ownHost).length > 0

/** `undefined`: the request is for something else. Throws for a preview that cannot be. `ownHost`: the proxy's own name. */
export const readPreviewAddress = (
  url: string,
  hostHeader: string | undefined,
  ownHost: string,
): PreviewAddress | undefined => {
  const host = (hostHeader ?? '').toLowerCase()
  const [, hostPort, label] = labelOf(host, ownHost)
  const isOwnHost = hostPort === undefined || label === undefined
  if (isOwnHost && !url.startsWith('/preview/')) return undefined
  if (url.length > longestUrl) throw new Problem('bad_request', 'The URL is too long.')
  const parts = isOwnHost
    ? /^(\/preview\/([^/?]+)\/(\d{1,5}))(\/[^?]*)?(\?.*)?$/s.exec(url)
    : /^()()()(\/[^?]*|\*)(\?.*)?$/s.exec(url)
  if (parts === null && !isOwnHost) throw new Problem('bad_request', 'The target of a request is a path.')
  const [, whole = '', encodedName = '', pathPort = '', path = '', query = ''] = parts ?? []
  const sandbox = isOwnHost ? decoded(encodedName) : label
  if (!sandbox || sandbox.length > longestName || /[/\0]/.test(sandbox)) {
    throw new Problem('not_found', 'A preview is at /preview/{sandboxId}/{port}/ or has a host name of its own.')
  }
  const { values, rest } = takeFromQuery(query, [authKey, acceptKey])
  return {
    sandbox,
    port: readPort(isOwnHost ? pathPort : hostPort),
    host: hostHeader ?? '',
    prefix: whole,
    path,
    query: rest,
    queryToken: values[authKey],
    isAcceptance: values[acceptKey] !== undefined,
  }
}

/** The address as a browser has it, without what is ours; never one that a browser takes for another host's. */
export const visibleUrl = ({ prefix, path, query }: PreviewAddress): string =>
  `${prefix}${path.replace(/^[/\\]*/, '/')}${query}`
