// Configures our own issuer, which uses oidc-provider and has one client, our own. The issuer supports codes with PKCE, device
// codes, and refresh tokens that are replaced at each use.
import type { EventEmitter } from 'node:events'
import { interactionPolicy, Provider } from 'oidc-provider'
import type { Logger } from '#src/kit/log.ts'
import type { Settings } from '../parts.ts'
import { dashboardUrl } from '../settings/dashboard-url.ts'
import type { Database } from '../storage/database.ts'
import type { Encryption } from '../storage/encryption.ts'
import { findUserById } from '../users/service.ts'
import { issuerPath, issuerUrl } from './address.ts'
import type { IssuerKeys } from './keys.ts'
import { codePage, confirmPage, messagePage, signOutPage } from './pages.ts'
import { recordsIn } from './records.ts'
import { linkParameter } from './sign-in-links.ts'

export type ProviderParts = { database: Database; encryption: Encryption; log: Logger; settings: Settings }

const sessionCookie = 'alcove_session'

const minute = 60
const day = 24 * 60 * minute
/**
 * Lifetime in seconds of a sign-in that is begun but not completed. All such sign-ins have this lifetime, so the oldest of them
 * expires first (records.ts).
 */
const begun = 15 * minute

/**
 * The scopes that clients may request. Scopes do not limit a token: its holder may do everything that the user may do.
 */
const scope = 'openid profile email offline_access'

/**
 * Returns the rules that send a browser to our sign-in page. A one-time link leads to this page even if the browser is signed in.
 */
const signInPolicy = () => {
  const policy = interactionPolicy.base()
  const { Check } = interactionPolicy
  const hasLink = new Check('link', 'a link signs in the user that it was made for', ({ oidc }) =>
    oidc.params?.[linkParameter] === undefined || oidc.result?.login !== undefined
      ? Check.NO_NEED_TO_PROMPT
      : Check.REQUEST_PROMPT,
  )
  policy.get('login')?.checks.add(hasLink)
  return policy
}

export const createProvider = (parts: ProviderParts, keys: IssuerKeys): Provider => {
  const { database, encryption, log, settings } = parts
  const { audience, clientId } = settings.identity
  const pages = [`${settings.publicUrl}/`, dashboardUrl(settings)]
  const provider = new Provider(issuerUrl(settings), {
    adapter: recordsIn(database, encryption),
    clients: [
      {
        client_id: clientId,
        client_name: 'Alcove',
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types: ['code'],
        redirect_uris: pages,
        post_logout_redirect_uris: pages,
      },
    ],
    jwks: { keys: keys.signing as never },
    cookies: {
      keys: [keys.cookie],
      names: { session: sessionCookie, interaction: 'alcove_interaction', resume: 'alcove_resume' },
      long: { httpOnly: true, sameSite: 'lax', path: issuerPath },
      short: { httpOnly: true, sameSite: 'lax' },
    },
    responseTypes: ['code'],
    scopes: scope.split(' '),
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    findAccount: async (_ctx, id) => {
      const user = await findUserById(database.sql, id)
      if (user === undefined) return undefined
      const { name, email, emailVerified } = user
      return { accountId: id, claims: () => ({ sub: id, name, email, email_verified: emailVerified }) }
    },
    // Alcove itself is the only client, so the issuer does not ask users for consent. Users confirm only the code of a device
    // (`confirmPage`).
    loadExistingGrant: async (ctx) => {
      const { client, session } = ctx.oidc
      if (client === undefined || session?.accountId === undefined) return undefined
      const grant = new ctx.oidc.provider.Grant({ accountId: session.accountId, clientId: client.clientId })
      grant.addOIDCScope(scope)
      grant.addResourceScope(resource, scope)
      await grant.save()
      return grant
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    clientBasedCORS: (_ctx, origin) => origin === new URL(settings.publicUrl).origin,
    extraParams: [linkParameter],
    interactions: { policy: signInPolicy(), url: (_ctx, { uid }) => `${issuerPath}/interaction/${uid}` },
    renderError: (ctx, { error, error_description: description }) => {
      ctx.type = 'html'
      ctx.body = messagePage('This did not work', description ?? error)
    },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx, form) => {
          ctx.body = signOutPage(form)
        },
        postLogoutSuccessSource: (ctx) => {
          ctx.body = messagePage('Signed out', 'You are signed out of Alcove in this browser.')
        },
      },
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: '****-****',
        // oidc-provider would store `deviceInfo` with each code, although no page shows it.
        deviceInfo: () => ({}),
        userCodeInputSource: (ctx, form, _out, error) => {
          ctx.body = codePage(form, error === undefined ? '' : 'This code is wrong, was already used, or has expired.')
        },
        userCodeConfirmSource: (ctx, form, _client, _device, userCode) => {
          ctx.body = confirmPage(form, userCode)
        },
        successSource: (ctx) => {
          ctx.body = messagePage('Signed in', 'Your device is signed in. You can close this page.')
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, asked) => {
          if (asked !== resource) throw new Error('there is one resource')
          return {
            scope,
            audience,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 15 * minute,
            jwt: { sign: { alg: 'RS256' } },
          }
        },
      },
    },
    ttl: {
      AccessToken: 15 * minute,
      AuthorizationCode: minute,
      DeviceCode: begun,
      IdToken: 15 * minute,
      Interaction: begun,
      RefreshToken: 14 * day,
      Grant: 14 * day,
      Session: (_ctx, { accountId }) => (accountId === undefined ? begun : 12 * 60 * minute),
    },
  })
  // oidc-provider reads the host and the protocol of its URLs from proxy headers, which issuer.ts sets from our
  // configured URL.
  provider.proxy = true
  provider.use(async (ctx, next) => {
    // Without a session, oidc-provider would answer the form at `/device` with an internal error.
    // The session may have expired, or may belong to another browser.
    const session = ctx.cookies.get(sessionCookie)
    if (ctx.method === 'POST' && ctx.path === '/device' && !(session && (await provider.Session.find(session)))) {
      ctx.status = 400
      ctx.type = 'html'
      ctx.body = messagePage(
        'This did not work',
        'This form has expired, or was opened in another browser. Start again.',
      )
      return
    }
    await next()
  })
  // Without this handler, Koa would print a stack trace for every error, even for an interrupted request.
  ;(provider as EventEmitter).on('error', (error) =>
    log.debug({ err: error }, 'a call of the embedded issuer broke off'),
  )
  provider.on('server_error', (_ctx, error) => log.error({ err: error }, 'the embedded issuer failed'))
  return provider
}

const resource = 'urn:alcove:api'
