// Reads from a request whether it is for a preview, and for which one. A preview has its own host name, such as
// `3000-{sandbox}.proxy.example` for port 3000. If the gate has no domain for host names, a preview has a path:
// `/preview/{sandbox}/{port}/…`. `{sandbox}` is an id, a name, or the token of a signed URL.
import { isIP } from 'node:net'
import { Problem } from '#src/problems.ts'
import { reservedPorts, toolboxPort } from '#src/wire/access.ts'
import { decoded, takeFromQuery } from '../query.ts'
import { authKey, longestName, longestUrl } from '../target.ts'

export type PreviewAddress = {
  /** The part of the address that says which sandbox: its id, its name, or the token of a signed URL. */
  sandbox: string
  port: number
  /** The host and port in the request; empty if the request has no host. */
  host: string
  /** `/preview/{sandbox}/{port}` for a preview by path, otherwise empty. The server in the sandbox does not get this part. */
  prefix: string
  /**
   * The path and `query` go to the server in the sandbox, without fields that only the gate reads. The path is empty or starts
   * with a slash.
   */
  path: string
  query: string
  queryToken: string | undefined
  /** True if the visitor pressed the button of the warning page. */
  isAcceptance: boolean
}

export const acceptKey = 'ALCOVE_ACCEPT_PREVIEW'

const readPort = (digits: string): number => {
  const port = Number(digits)
  if (port < 1 || port > 65_535) throw new Problem('not_found', `There is no port ${digits}.`)
  if (port !== toolboxPort && reservedPorts.includes(port))
    throw new Problem('forbidden', `Port ${port} is reserved; it has no preview.`)
  return port
}

/** Returns a host name without its port, brackets and final dot. */
const nameOf = (host: string) =>
  host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')

/** Whether the host name means the machine that uses it: `localhost` or a loopback address. */
const isLoopback = (name: string) => name === 'localhost' || name === '::1' || /^127(?:\.\d{1,3}){3}$/.test(name)

/** Whether the name means the gate itself. A call without a host name comes from no browser, so it is for the gate. */
const isOwnName = (name: string, ownName: string) =>
  name === '' || name === ownName || isIP(name) !== 0 || (isLoopback(name) && isLoopback(ownName))

/**
 * Whether a host name contains a preview's name, in the form `3000-{id or token}`. The gate serves no preview at a subdomain of
 * another preview. Pages of the subdomain could set cookies for the other preview.
 */
const hasPreviewLabel = (name: string) =>
  /(?:^|\.)\d{1,5}-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z0-9]{16})(?:\.|$)/.test(name)

/** Returns the port and the sandbox in a preview's own host name. */
const labelOf = (host: string, ownHost: string): { port: string; sandbox: string } | undefined => {
  if (nameOf(host) === nameOf(ownHost)) return undefined
  const [, port, sandbox, parent] = /^(\d{1,5})-([a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)\.([^@/\\]+)$/.exec(host) ?? []
  if (port === undefined || sandbox === undefined || parent === undefined) return undefined
  return nameOf(parent) !== nameOf(ownHost) && hasPreviewLabel(nameOf(parent)) ? undefined : { port, sandbox }
}

/** Whether the page at `url` is a preview of the sandbox whose preview is at `host`; the ports may differ. */
export const isPageOf = (url: string, host: string): boolean => {
  const labelIn = (text: string) => /^\d{1,5}-([^.]+\..+)$/.exec(nameOf(text))?.[1]
  const here = labelIn(host.toLowerCase())
  return here !== undefined && URL.canParse(url) && labelIn(new URL(url).hostname) === here
}

/** Whether a page's host name has the form of a preview's host name. */
export const isPageOfPreview = (url: string): boolean =>
  URL.canParse(url) && /^\d{1,5}-[^.]+\./.test(new URL(url).hostname)

/** Whether the request is for a preview. True also if no such preview can exist, for example because of the port. */
export const isForPreview = (url: string, hostHeader: string | undefined, ownHost: string): boolean =>
  url.startsWith('/preview/') || labelOf((hostHeader ?? '').toLowerCase(), ownHost) !== undefined

/** Reads a preview from a path. Throws if the path names no preview, or if the host is not the gate's own. */
const readPath = (url: string, host: string, ownHost: string) => {
  if (!isOwnName(nameOf(host), nameOf(ownHost))) {
    throw new Problem('not_found', "A preview by its path is at the gate's own address only.")
  }
  const [, prefix = '', encodedName = '', port = '', path = '', query = ''] =
    /^(\/preview\/([^/?]+)\/(\d{1,5}))(\/[^?]*)?(\?.*)?$/s.exec(url) ?? []
  return { prefix, sandbox: decoded(encodedName), port, path, query }
}

const readNamed = (url: string, label: { port: string; sandbox: string }) => {
  const [, path = '', query = ''] = /^(\/[^?]*|\*)(\?.*)?$/s.exec(url) ?? []
  if (path === '') throw new Problem('bad_request', 'The target of a request must be a path.')
  return { prefix: '', ...label, path, query }
}

/**
 * Reads the address of a preview; `undefined` for other requests. Throws if no preview can have this address. `ownHost`: the
 * gate's own name.
 */
export const readPreviewAddress = (
  url: string,
  hostHeader: string | undefined,
  ownHost: string,
): PreviewAddress | undefined => {
  const host = (hostHeader ?? '').toLowerCase()
  const label = labelOf(host, ownHost)
  if (label === undefined && !url.startsWith('/preview/')) return undefined
  if (url.length > longestUrl) throw new Problem('bad_request', 'The URL is too long.')
  const { prefix, sandbox, port, path, query } =
    label === undefined ? readPath(url, host, ownHost) : readNamed(url, label)
  if (!sandbox || sandbox.length > longestName || /[/\0]/.test(sandbox)) {
    throw new Problem('not_found', 'A preview is at /preview/{sandboxId}/{port}/ or has a host name of its own.')
  }
  const { values, rest } = takeFromQuery(query, [authKey, acceptKey])
  return {
    sandbox,
    port: readPort(port),
    host: hostHeader ?? '',
    prefix,
    path,
    query: rest,
    queryToken: values[authKey],
    isAcceptance: values[acceptKey] !== undefined,
  }
}

/**
 * Returns the path and query that the browser should show. The path begins with exactly one slash, because a browser reads
 * `//name` as another host.
 */
export const visibleUrl = ({ prefix, path, query }: PreviewAddress): string =>
  `${prefix}${path.replace(/^[/\\]*/, '/')}${query}`

/** Returns a preview's URL with the sandbox's id in place of its name. The gate redirects visitors to this URL. */
export const urlAtId = ({ host, prefix, port, path, query, queryToken }: PreviewAddress, sandboxId: string): string => {
  const token = queryToken === undefined ? '' : `${authKey}=${encodeURIComponent(queryToken)}`
  const whole = token === '' ? query : `${query === '' ? '?' : `${query}&`}${token}`
  if (prefix !== '') return `/preview/${sandboxId}/${port}${path}${whole}`
  // The URL has no scheme, because the gate may not know whether the browser uses HTTPS. The browser then keeps the scheme that it
  // uses.
  return `//${port}-${sandboxId}.${host.slice(host.indexOf('.') + 1)}${path}${whole}`
}
