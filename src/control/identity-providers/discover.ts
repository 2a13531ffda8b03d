// Requests the discovery document of an identity provider (OpenID Connect Discovery §4). Control requests the document for
// every use and does not cache it.
import { Problem } from '#src/problems.ts'
import { OutboundError } from '../outbound/error.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { readTargetUrl } from '../outbound/target.ts'

export type Discovered = {
  issuer: string
  authorization_endpoint: string
  token_endpoint: string
  jwks_uri: string
  userinfo_endpoint?: string
  token_endpoint_auth_methods_supported?: string[]
  [other: string]: unknown
}

/** Thrown if a provider's discovery document cannot be fetched or used. Whoever manages the provider may see the message. */
export class DiscoveryFailed extends Error {}

const mostBytes = 256 * 1024

/** Throws 400 for a URL that can never be an issuer (OpenID Connect Core §2), for example a URL with a query. */
export const checkIssuerUrl = (given: string): void => {
  try {
    const { search, hash, href } = readTargetUrl(given)
    if (search !== '' || hash !== '' || /[?#]/.test(href))
      throw new OutboundError('url', 'The URL must not have a query or a fragment.')
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    throw new Problem('bad_request', `oidcConfig.issuerUrl is not usable: ${error.message}`, { cause: error })
  }
}

const withoutSlash = (url: string) => url.replace(/\/+$/, '')

const readEndpoint = (document: Record<string, unknown>, name: string): string => {
  const value = document[name]
  if (typeof value !== 'string') throw new DiscoveryFailed(`The discovery document has no ${name}.`)
  try {
    readTargetUrl(value)
  } catch {
    throw new DiscoveryFailed(`The ${name} of the discovery document is not usable.`)
  }
  return value
}

/**
 * Throws if the discovery document names an issuer other than `issuerUrl`. Providers with one URL for all customers are
 * refused, because their document names another issuer.
 */
const checkIssuer = (document: Record<string, unknown>, issuerUrl: string): string => {
  const { issuer } = document
  if (typeof issuer !== 'string') throw new DiscoveryFailed('The discovery document has no issuer.')
  if (withoutSlash(issuer) !== withoutSlash(issuerUrl)) {
    throw new DiscoveryFailed('The discovery document names another issuer than the issuer URL of this provider.')
  }
  return issuer
}

const readDocument = (body: Buffer): Record<string, unknown> => {
  try {
    const document: unknown = JSON.parse(body.toString())
    if (typeof document === 'object' && document !== null && !Array.isArray(document)) return { ...document }
  } catch {
    // JSON.parse throws if the text is not JSON. The caller gets the error `DiscoveryFailed` below instead.
  }
  throw new DiscoveryFailed('The discovery document is not a JSON object.')
}

const supports = ({ token_endpoint_auth_methods_supported: methods }: Record<string, unknown>): boolean =>
  methods === undefined ||
  (Array.isArray(methods) && methods.some((one) => one === 'client_secret_basic' || one === 'client_secret_post'))

export const discover = async (outbound: Outbound, issuerUrl: string): Promise<Discovered> => {
  const url = `${withoutSlash(issuerUrl)}/.well-known/openid-configuration`
  const { status, body } = await outbound
    .send({ method: 'GET', url, headers: { accept: 'application/json' }, requireTls: true, mostBytes })
    .catch((error: unknown) => {
      if (error instanceof OutboundError) throw new DiscoveryFailed(error.message, { cause: error })
      throw error
    })
  if (status !== 200)
    throw new DiscoveryFailed(`The request for the discovery document was answered with status ${status}.`)
  const document = readDocument(body)
  if (!supports(document)) throw new DiscoveryFailed('The provider does not accept a client secret.')
  return {
    ...document,
    issuer: checkIssuer(document, issuerUrl),
    authorization_endpoint: readEndpoint(document, 'authorization_endpoint'),
    token_endpoint: readEndpoint(document, 'token_endpoint'),
    jwks_uri: readEndpoint(document, 'jwks_uri'),
  }
}
