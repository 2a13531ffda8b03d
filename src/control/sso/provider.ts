// Talks to an identity provider: OpenID Connect's code flow with PKCE. openid-client checks every answer. Every request goes
// through `outbound`, the client for URLs that come from users. Each sign-in reads the discovery document, so the provider may
// change its keys at any time.
import * as oidc from 'openid-client'
import { Problem } from '#src/problems.ts'
import { type Discovered, DiscoveryFailed, discover } from '../identity-providers/discover.ts'
import { type IdentityProvider, secretPurpose } from '../identity-providers/identity-provider.ts'
import { OutboundError } from '../outbound/error.ts'
import { type Outbound, outboundOf } from '../outbound/outbound.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Attempt } from './store.ts'

export type ProviderParts = { outbound: Outbound; encryption: Encryption }

/** An identity provider's claims about the person who signed in. All texts are untrusted input. */
export type ProviderClaims = { subject: string; email: unknown; emailVerified: unknown; name: unknown }

const mostBytes = 256 * 1024

const asHeaders = (headers: Record<string, string | string[] | undefined>): Headers => {
  const made = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) made.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  return made
}

const asBody = (body: oidc.FetchBody): string | Uint8Array | undefined => {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('this body was not foreseen')
}

/**
 * Makes the `fetch` of openid-client. This `fetch` sends every request through `outbound`, the client for URLs that come from
 * users.
 */
const fetchBy =
  (outbound: Outbound): oidc.CustomFetch =>
  async (url, { method, headers, body }) => {
    const content = asBody(body)
    const reply = await outbound.send({
      method: method === 'POST' ? 'POST' : 'GET',
      url,
      headers: Object.fromEntries(new Headers(headers)),
      ...(content === undefined ? {} : { body: content }),
      requireTls: true,
      mostBytes,
    })
    // The constructor of `Response` throws for a status below 200 or above 599, and for a body with a status such as
    // 204.
    if (reply.status < 200 || reply.status > 599)
      throw new OutboundError('unreachable', 'The server did not answer with valid HTTP.')
    const hasBody = ![204, 205, 304].includes(reply.status)
    return new Response(hasBody ? new Uint8Array(reply.body) : null, {
      status: reply.status,
      headers: asHeaders(reply.headers),
    })
  }

const authenticationOf = ({ token_endpoint_auth_methods_supported: methods }: Discovered, secret: string) =>
  // If a provider does not list its authentication methods, the provider supports `client_secret_basic` (RFC 8414 §2).
  methods === undefined || methods.includes('client_secret_basic')
    ? oidc.ClientSecretBasic(secret)
    : oidc.ClientSecretPost(secret)

const configure = async ({ outbound: ofAll, encryption }: ProviderParts, provider: IdentityProvider) => {
  const outbound = outboundOf(ofAll, provider.organizationId)
  const discovered = await discover(outbound, provider.issuerUrl)
  const secret = encryption.decrypt(secretPurpose(provider), provider.sealedSecret)
  const authentication = authenticationOf(discovered, secret)
  const configuration = new oidc.Configuration(discovered as oidc.ServerMetadata, provider.clientId, {}, authentication)
  configuration[oidc.customFetch] = fetchBy(outbound)
  // Makes openid-client check the signatures of tokens, although tokens come over TLS.
  oidc.enableNonRepudiationChecks(configuration)
  // Lets openid-client use plain HTTP. `outbound` still refuses plain HTTP, except inside the networks that the operator has named.
  oidc.allowInsecureRequests(configuration)
  return configuration
}

/** Returns whether the provider could not be reached, or has no usable discovery document. False for other invalid replies. */
const isAway = (error: unknown): boolean => {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if (cause instanceof OutboundError || cause instanceof DiscoveryFailed) return true
  }
  return false
}

const asProblem = (error: unknown): unknown => {
  if (isAway(error)) return new Problem('sso_provider_unavailable', undefined, { cause: error })
  if (error instanceof oidc.AuthorizationResponseError && error.error === 'access_denied') {
    return new Problem('sso_access_denied', undefined, { cause: error })
  }
  const isOfProtocol =
    error instanceof oidc.ClientError ||
    error instanceof oidc.ResponseBodyError ||
    error instanceof oidc.AuthorizationResponseError ||
    error instanceof oidc.WWWAuthenticateChallengeError
  return isOfProtocol ? new Problem('sso_invalid_response', undefined, { cause: error }) : error
}

const speaking = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw asProblem(error)
  }
}

type Asking = Pick<Attempt, 'nonce' | 'codeVerifier'> & { redirectUri: string; state: string }

/** Returns the URL of the identity provider to which the browser is redirected for the sign-in. */
export const authorizationUrl = async (
  parts: ProviderParts,
  provider: IdentityProvider,
  { nonce, codeVerifier, redirectUri, state }: Asking,
): Promise<string> =>
  await speaking(async () => {
    const configuration = await configure(parts, provider)
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: provider.scope,
      state,
      nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    })
    return url.href
  })

type Answer = Pick<Attempt, 'nonce' | 'codeVerifier'> & { currentUrl: URL; state: string }

/**
 * Exchanges the authorization code for claims about the user. Without an e-mail address in the ID token, asks the
 * userinfo endpoint, if there is one.
 */
export const exchangeCode = async (
  parts: ProviderParts,
  provider: IdentityProvider,
  { nonce, codeVerifier, currentUrl, state }: Answer,
): Promise<ProviderClaims> =>
  await speaking(async () => {
    const configuration = await configure(parts, provider)
    const tokens = await oidc.authorizationCodeGrant(configuration, currentUrl, {
      expectedNonce: nonce,
      expectedState: state,
      pkceCodeVerifier: codeVerifier,
      idTokenExpected: true,
    })
    const claims = tokens.claims()!
    const asksMore = claims['email'] === undefined && configuration.serverMetadata().userinfo_endpoint !== undefined
    const source = asksMore ? await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub) : claims
    return {
      subject: claims.sub,
      email: source['email'],
      emailVerified: source['email_verified'],
      name: source['name'] ?? source['preferred_username'],
    }
  })
