// Decides where a registry's password may be sent. A registry names an address, the realm, that exchanges the password for a
// token. A hostile registry could name any address. The password is therefore sent only to a realm that probably has the same
// owner as the registry.
import { isIP } from 'node:net'

export type Challenge = { scheme: string; parameters: Readonly<Record<string, string>> }

const longestHeader = 16 * 1024
const piece = /([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))|([\w-]+)/g

/** Reads the challenges of a `WWW-Authenticate` header (RFC 9110 §11.6.1). The returned names are in lower case. */
export const readChallenges = (header: string): Challenge[] => {
  const challenges: { scheme: string; parameters: Record<string, string> }[] = []
  for (const [, name, quoted, plain, scheme] of header.slice(0, longestHeader).matchAll(piece)) {
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), parameters: Object.create(null) })
    else if (name !== undefined) {
      const value = quoted === undefined ? plain : quoted.replaceAll(/\\(.)/g, '$1')
      const parameters = challenges.at(-1)?.parameters
      if (parameters !== undefined) parameters[name.toLowerCase()] ??= value ?? ''
    }
  }
  return challenges
}

const hostnameOf = (host: string) => host.replace(/:\d+$/, '')

/** For some registries, the only realm that may get the registry's password. */
const knownRealms: Readonly<Record<string, string>> = { 'docker.io': 'auth.docker.io' }

/** Returns the domain that probably belongs to the owner of a host. This is a guess, without a list of public suffixes. */
const domainOf = (hostname: string): string => {
  if (isIP(hostname) !== 0) return hostname
  const labels = hostname.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(top.length === 2 && second.length <= 3 ? -3 : -2).join('.')
}

/**
 * Returns the URL of a realm (the token server that a registry names) if it may get the registry's password; otherwise undefined.
 * The realm must be on the registry's host or in its domain, and use HTTPS. A registry with plain HTTP (`isPlain`) may have a
 * realm with plain HTTP on its own host.
 */
export const trustedRealm = (registry: string, realm: string, isPlain: boolean): URL | undefined => {
  const url = URL.canParse(realm) ? new URL(realm) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    return undefined
  const host = hostnameOf(registry)
  if (url.protocol === 'http:') return isPlain && url.hostname === host ? url : undefined
  const known = knownRealms[registry]
  if (known !== undefined) return url.host === known ? url : undefined
  return url.hostname === host || domainOf(url.hostname) === domainOf(host) ? url : undefined
}
