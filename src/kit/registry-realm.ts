// Decides to which hosts a registry's password may be sent. A registry that uses tokens names another address, its
// realm, from which clients get tokens for the password. The password is sent only to a realm that plausibly has the
// owner of the registry.
import { isIP } from 'node:net'

export type Challenge = { scheme: string; parameters: Readonly<Record<string, string>> }

const longestHeader = 16 * 1024
const piece = /([\w-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))|([\w-]+)/g

/** Reads the challenges of a `WWW-Authenticate` header (RFC 9110 §11.6.1). Names are in lower case. */
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

/** Known realms that are in another domain than their registry. */
const knownRealms: Readonly<Record<string, string>> = { 'docker.io': 'auth.docker.io' }

/**
 * The domain of a host's owner, guessed without a list of public suffixes: the last two labels of the host, or three
 * labels below a short suffix such as co.uk.
 */
const domainOf = (hostname: string): string => {
  if (isIP(hostname) !== 0) return hostname
  const labels = hostname.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  return labels.slice(top.length === 2 && second.length <= 3 ? -3 : -2).join('.')
}

/**
 * Returns the realm's URL if the registry's password may be sent there: the realm is encrypted, and on the registry's
 * host or in its domain. A registry without encryption may have a realm without encryption, on its own host.
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
