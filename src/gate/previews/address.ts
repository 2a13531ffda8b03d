// Reads from a request whether it is for a preview, and of what. A preview has a host name of its own,
// `{port}-{sandbox}.<host of `{proxy_url}`>`, or, where there are no such names, a path of the gate's own host:
// `/preview/{sandbox}/{port}/…`. `{sandbox}` is an id, a name, or the token of a signed URL.
import { isIP } from 'node:net'
import { Problem } from '#src/problems.ts'
import { reservedPorts, toolboxPort } from '#src/wire/access.ts'
import { decoded, takeFromQuery } from '../query.ts'
import { authKey, longestName, longestUrl } from '../target.ts'

export type PreviewAddress = {
  /** Id, name or token as it stands in the address. */
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
  if (port !== toolboxPort && reservedPorts.includes(port))
    throw new Problem('forbidden', `Port ${port} is reserved; it has no preview.`)
  return port
}

/** Without its port, brackets and the dot of a full name. */
const nameOf = (host: string) =>
  host
    .replace(/:\d*$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')

/** Names that mean this machine to those who call us at an address of it. */
const isLoopback = (name: string) => name === 'localhost' || name === '::1' || /^127(?:\.\d{1,3}){3}$/.test(name)

/** Whether a caller means the gate itself. A request without a host is from no browser. */
const isOwnName = (name: string, ownName: string) =>
  name === '' || name === ownName || isIP(name) !== 0 || (isLoopback(name) && isLoopback(ownName))

/** Below an origin of one sandbox no other may have one: its pages could set cookies for everything above them. */
const hasPreviewLabel = (name: string) =>
  /(?:^|\.)\d{1,5}-(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z0-9]{16})(?:\.|$)/.test(name)

/** The port and the sandbox of a preview's own host name. */
const labelOf = (host: string, ownHost: string): { port: string; sandbox: string } | undefined => {
  if (nameOf(host) === nameOf(ownHost)) return undefined
  const [, port, sandbox, parent] = /^(\d{1,5})-([a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)\.([^@/\\]+)$/.exec(host) ?? []
  if (port === undefined || sandbox === undefined || parent === undefined) return undefined
  return nameOf(parent) !== nameOf(ownHost) && hasPreviewLabel(nameOf(parent)) ? undefined : { port, sandbox }
}

/** Whether a page is of this sandbox, on whatever port. `host` is a preview's own host name. */
export const isPageOf = (url: string, host: string): boolean => {
  const labelIn = (text: string) => /^\d{1,5}-([^.]+\..+)$/.exec(nameOf(text))?.[1]
  const here = labelIn(host.toLowerCase())
  return here !== undefined && URL.canParse(url) && labelIn(new URL(url).hostname) === here
}

/** Whether a page has a host name as previews have. */
export const isPageOfPreview = (url: string): boolean =>
  URL.canParse(url) && /^\d{1,5}-[^.]+\./.test(new URL(url).hostname)

/** Whether the request is for a preview, which need not be one that can be. */
export const isForPreview = (url: string, hostHeader: string | undefined, ownHost: string): boolean =>
  url.startsWith('/preview/') || labelOf((hostHeader ?? '').toLowerCase(), ownHost) !== undefined

/** Throws where the path names none, or where it stands at a host that is not the gate's own. */
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
  if (path === '') throw new Problem('bad_request', 'The target of a request is a path.')
  return { prefix: '', ...label, path, query }
}

/** `undefined`: the request is for something else. Throws for a preview that cannot be. `ownHost`: the gate's own name. */
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

/** The address as a browser has it, without what is ours; never one that a browser takes for another host's. */
export const visibleUrl = ({ prefix, path, query }: PreviewAddress): string =>
  `${prefix}${path.replace(/^[/\\]*/, '/')}${query}`

/** URL of the page at the sandbox's id, the only place where content is served. */
export const urlAtId = ({ host, prefix, port, path, query, queryToken }: PreviewAddress, sandboxId: string): string => {
  const token = queryToken === undefined ? '' : `${authKey}=${encodeURIComponent(queryToken)}`
  const whole = token === '' ? query : `${query === '' ? '?' : `${query}&`}${token}`
  if (prefix !== '') return `/preview/${sandboxId}/${port}${path}${whole}`
  // Without a scheme, it is that of this very call.
  return `//${port}-${sandboxId}.${host.slice(host.indexOf('.') + 1)}${path}${whole}`
}
