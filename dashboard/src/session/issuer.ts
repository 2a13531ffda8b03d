// Signs the user in at the server's issuer, with an authorization code and PKCE (library openid-client). The session storage holds
// only what is needed when the browser comes back from the issuer.
import { sha256 } from '@noble/hashes/sha2.js'
import * as client from 'openid-client'
import { base64url } from './base64url.ts'

export type ServerConfig = {
  version: string
  oidc: { issuer: string; clientId: string }
  proxyToolboxUrl: string
  proxyTemplateUrl: string
  defaultSnapshot: string
  environment: string
  sshGatewayCommand?: string
}

export type Tokens = {
  accessToken: string
  refreshToken?: string | undefined
  /** When the access token expires, on the clock of `performance.now()`. Undefined if this is not known. */
  endsAt?: number | undefined
}

/** The page to which the issuer sends the browser back. */
export const redirectUri = new URL('/dashboard/', location.origin).href
const scope = 'openid profile email offline_access'

type Started = { verifier: string; state: string; returnTo: string }
const startedKey = 'alcove.sign-in'

let configuration: Promise<client.Configuration> | undefined

/**
 * Fetches the issuer's discovery document, once. `skewSeconds` says how far the server's clock is ahead of this machine's
 * clock.
 */
export const discover = ({ oidc }: ServerConfig, skewSeconds: number): Promise<client.Configuration> => {
  configuration ??= client
    .discovery(new URL(oidc.issuer), oidc.clientId, { [client.clockSkew]: skewSeconds }, client.None(), {
      execute: oidc.issuer.startsWith('http://') ? [client.allowInsecureRequests] : [],
    })
    .catch((error: unknown) => {
      configuration = undefined
      throw error
    })
  return configuration
}

const tokensOf = (
  answer: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
  before?: Tokens,
): Tokens => ({
  accessToken: answer.access_token,
  refreshToken: answer.refresh_token ?? before?.refreshToken,
  endsAt: performance.now() + (answer.expiresIn() ?? 300) * 1000,
})

/**
 * The PKCE challenge: the SHA-256 of the verifier, in base64url (RFC 7636). A library computes it, because browsers offer hashes
 * only with HTTPS and on localhost.
 */
const challengeOf = (verifier: string): string => base64url(sha256(new TextEncoder().encode(verifier)))

/**
 * Sends the browser to the issuer. `returnTo`: the address to open after the sign-in. `link`: the token of a one-time sign-in link,
 * which replaces the password.
 */
export const goToIssuer = async (
  issuer: client.Configuration,
  { returnTo, link }: { returnTo: string; link?: string | undefined },
): Promise<never> => {
  const verifier = client.randomPKCECodeVerifier()
  const state = client.randomState()
  sessionStorage.setItem(startedKey, JSON.stringify({ verifier, state, returnTo } satisfies Started))
  const url = client.buildAuthorizationUrl(issuer, {
    redirect_uri: redirectUri,
    scope,
    state,
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    ...(link !== undefined && { link }),
  })
  location.replace(url)
  return await new Promise<never>(() => {})
}

/** Returns the stored values of this tab's sign-in, and deletes them, so that they are used only once. */
const takeStarted = (): Started | undefined => {
  const stored = sessionStorage.getItem(startedKey)
  sessionStorage.removeItem(startedKey)
  return stored === null ? undefined : (JSON.parse(stored) as Started)
}

/**
 * The issuer's error message in the page's address. Undefined if this tab began no sign-in: anybody can make a link with a message.
 */
export const refusalOf = (search: URLSearchParams): string | undefined => {
  const started = takeStarted()
  if (started === undefined || search.get('state') !== started.state) return undefined
  return search.get('error_description') ?? undefined
}

/** Exchanges the authorization code in the address for tokens. Returns undefined if this tab did not begin the sign-in. */
export const finishAtIssuer = async (
  issuer: client.Configuration,
  url: URL,
): Promise<{ tokens: Tokens; returnTo: string } | undefined> => {
  const started = takeStarted()
  if (started === undefined) return undefined
  const { verifier, state, returnTo } = started
  const answer = await client.authorizationCodeGrant(issuer, url, { pkceCodeVerifier: verifier, expectedState: state })
  return { tokens: tokensOf(answer), returnTo }
}

/** Exchanges the refresh token for new tokens. */
export const renewAtIssuer = async (issuer: client.Configuration, before: Tokens): Promise<Tokens> => {
  if (before.refreshToken === undefined) throw new Error('This session cannot be renewed.')
  return tokensOf(await client.refreshTokenGrant(issuer, before.refreshToken), before)
}

/** The address at which the issuer ends its session in this browser. Undefined if the issuer has no such address. */
export const signOutUrl = (issuer: client.Configuration): string | undefined =>
  issuer.serverMetadata().end_session_endpoint === undefined
    ? undefined
    : client.buildEndSessionUrl(issuer, {
        client_id: issuer.clientMetadata().client_id,
        post_logout_redirect_uri: redirectUri,
      }).href
