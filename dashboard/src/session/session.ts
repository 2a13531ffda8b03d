// The session of this tab. Tokens are only in memory: after a reload, the issuer recognizes its cookie and signs the user in
// without a form. An expired session is renewed in a second window, so that no typed text is lost.
import { type Configuration, randomState } from 'openid-client'
import { ApiProblem, unreachable } from '../api/problem.ts'
import {
  discover,
  finishAtIssuer,
  goToIssuer,
  refusalOf,
  renewAtIssuer,
  type ServerConfig,
  signOutUrl,
  type Tokens,
} from './issuer.ts'
import { isOwnToken, withoutMark } from './sso-token.ts'

/** In the state `expired`, the page stays open, and a dialog asks the user to sign in again. */
export type SessionState =
  | { name: 'opening' }
  | { name: 'signed-in' }
  | { name: 'expired' }
  | { name: 'failed'; reason: string; code?: string | undefined }

/** How early an access token is renewed: this many ms before it expires. */
const earlyMilliseconds = 60_000
export const organizationHeader = 'X-Daytona-Organization-ID'
const organizationKey = 'alcove.organization'
const renewalKey = 'alcove.renewal'
const channelName = 'alcove.session'

/** A message with new tokens. The window in which a user signed in again sends it to the tab that opened the window. */
type Renewal = { tabId: string; tokens: Tokens }

const subjectOf = (token: string): string | undefined => {
  try {
    const payload = token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/')
    return (JSON.parse(atob(payload)) as { sub?: string }).sub
  } catch {
    return undefined
  }
}

class Session {
  #state: SessionState = { name: 'opening' }
  #tokens: Tokens | undefined
  #config: ServerConfig | undefined
  #renewing: Promise<void> | undefined
  #skewMilliseconds = 0
  readonly #listeners = new Set<() => void>()
  readonly #tabId = randomState()
  readonly #channel = new BroadcastChannel(channelName)

  constructor() {
    this.#channel.onmessage = ({ data }: MessageEvent<Renewal>) => {
      // A window in which the user signs in again sends its tokens to all tabs. Only one tab uses the tokens: the tab that opened
      // the window. If two tabs used one refresh token, both sessions would end.
      if (data.tabId === this.#tabId) this.#accept(data.tokens)
    }
  }

  get state(): SessionState {
    return this.#state
  }

  /** The server's public configuration. It is known only after the session has been opened. */
  get config(): ServerConfig {
    if (this.#config === undefined) throw new Error('the session is not open')
    return this.#config
  }

  /** The id of the organization that this tab shows. Each tab has its own. */
  get organizationId(): string | undefined {
    return sessionStorage.getItem(organizationKey) ?? undefined
  }

  set organizationId(id: string) {
    sessionStorage.setItem(organizationKey, id)
    // Stores the organization for new tabs, which begin with the organization that was chosen last.
    localStorage.setItem(organizationKey, id)
    this.#tell()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  readonly snapshot = (): SessionState => this.#state

  /** The present time on the server's clock, in ms since 1970, even if this machine's clock is wrong. */
  now(): number {
    return Date.now() + this.#skewMilliseconds
  }

  /**
   * Opens the session, or sends the browser to the issuer. It never throws: the property `state` says whether the session is open.
   */
  async open(): Promise<void> {
    try {
      await this.#readConfig()
      await this.#open()
    } catch (error) {
      const { message } = error as Error
      this.#become({ name: 'failed', reason: error instanceof ApiProblem ? message : `Signing in failed. ${message}` })
    }
  }

  /** The headers of a call: the credential and the organization. An access token that expires soon is renewed first. */
  async headers(): Promise<Record<string, string>> {
    const token = await this.token()
    return {
      Authorization: `Bearer ${token}`,
      ...(this.organizationId !== undefined && { [organizationHeader]: this.organizationId }),
    }
  }

  /** Returns the access token. If it expires soon, it is renewed first. */
  async token(): Promise<string> {
    const { endsAt, refreshToken } = this.#tokens ?? {}
    if (endsAt !== undefined && refreshToken !== undefined && performance.now() > endsAt - earlyMilliseconds)
      await this.renew()
    return this.#tokens?.accessToken ?? ''
  }

  /** Renews the access token. If the issuer refuses the renewal, the session becomes `expired`. */
  async renew(): Promise<void> {
    this.#renewing ??= (async () => {
      try {
        this.#tokens = await renewAtIssuer(await this.#issuer(), this.#tokens!)
      } catch (error) {
        // A TypeError: the issuer could not be reached, perhaps only for a moment. So the session does not expire.
        if (!(error instanceof TypeError)) this.#expire()
      } finally {
        this.#renewing = undefined
      }
    })()
    await this.#renewing
  }

  /** Renews a credential that the server has refused. If that fails, returns false and the session becomes `expired`. */
  async renewRefused(): Promise<boolean> {
    if (this.#tokens?.refreshToken === undefined) this.#expire()
    else await this.renew()
    return this.#state.name === 'signed-in'
  }

  /** Opens a second window in which the user signs in again. That window then sends its tokens to this page. */
  signInAgain(): void {
    sessionStorage.setItem(renewalKey, this.#tabId)
    const opened = window.open('/dashboard/', '_blank', 'popup,width=520,height=640')
    sessionStorage.removeItem(renewalKey)
    // If the browser blocks the window, this page itself goes to the issuer.
    if (opened === null) void this.signIn()
  }

  /** Sends the browser from this page to the issuer, which sends it back to the page's address after the sign-in. */
  async signIn(link?: string): Promise<void> {
    const returnTo = `${location.pathname}${location.search}`
    await goToIssuer(await this.#issuer(), { returnTo, link })
  }

  async signOut(): Promise<void> {
    const url = signOutUrl(await this.#issuer())
    this.#tokens = undefined
    sessionStorage.clear()
    location.assign(url ?? '/dashboard/')
  }

  async #readConfig(): Promise<void> {
    const response = await fetch('/api/config').catch(() => {
      throw unreachable()
    })
    if (!response.ok) throw unreachable()
    this.#skewMilliseconds = Date.parse(response.headers.get('date') ?? '') - Date.now() || 0
    this.#config = (await response.json()) as ServerConfig
  }

  #issuer(): Promise<Configuration> {
    return discover(this.config, Math.round(this.#skewMilliseconds / 1000))
  }

  async #open(): Promise<void> {
    const url = new URL(location.href)
    const fragment = new URLSearchParams(url.hash.slice(1))
    const code = url.searchParams.get('error')
    const ssoToken = fragment.get('access_token')
    // Credentials are removed from the address immediately, so that they stay neither in the history nor in a copied address.
    if (url.hash !== '' && (ssoToken !== null || fragment.has('link')))
      history.replaceState(null, '', `${url.pathname}${url.search}`)
    if (ssoToken !== null) {
      const isSecure = location.protocol === 'https:'
      const isOwn = isOwnToken(ssoToken, document.cookie, isSecure)
      // biome-ignore lint/suspicious/noDocumentCookie: the newer interface is missing in pages without HTTPS
      document.cookie = withoutMark(isSecure)
      if (!isOwn) {
        this.#become({ name: 'failed', reason: '', code: 'invalid_state' })
        return
      }
      const organizationId = fragment.get('organization_id')
      if (organizationId !== null) this.organizationId = organizationId
      return this.#start({ accessToken: ssoToken })
    }
    if (code !== null) {
      history.replaceState(null, '', url.pathname)
      this.#become({ name: 'failed', reason: refusalOf(url.searchParams) ?? '', code })
      return
    }
    if (url.searchParams.has('code')) {
      const finished = await finishAtIssuer(await this.#issuer(), url)
      history.replaceState(null, '', finished?.returnTo ?? '/dashboard/')
      if (finished !== undefined) return this.#start(finished.tokens)
    }
    this.#checkAddress()
    await this.signIn(fragment.get('link') ?? undefined)
  }

  /**
   * Throws an error for the user if the page was not opened at the configured address, but for example at an IP address. The
   * server's own issuer sends browsers back only to the configured address.
   */
  #checkAddress(): void {
    const { issuer } = this.config.oidc
    const { origin } = new URL(issuer)
    if (!issuer.endsWith('/oidc') || origin === location.origin) return
    throw new Error(
      `The address of this server is ${origin}: open ${origin}/dashboard/ instead. If you cannot reach the server there, ask its operator to start it with --public-host.`,
    )
  }

  #start(tokens: Tokens): void {
    // If the key `renewalKey` is stored, a tab has opened this window to renew its session. Send the tokens to that tab, and close.
    const tabId = sessionStorage.getItem(renewalKey)
    if (tabId !== null) {
      sessionStorage.removeItem(renewalKey)
      this.#channel.postMessage({ tabId, tokens } satisfies Renewal)
      window.close()
      return
    }
    this.#tokens = tokens
    if (this.organizationId === undefined) {
      const last = localStorage.getItem(organizationKey)
      if (last !== null) sessionStorage.setItem(organizationKey, last)
    }
    this.#become({ name: 'signed-in' })
  }

  /** Uses the tokens that come from the second window, in which the user has signed in again. */
  #accept(tokens: Tokens): void {
    if (this.#state.name !== 'expired' || this.#tokens === undefined) return
    // Another user has signed in, so nothing of the present page may stay visible.
    if (subjectOf(tokens.accessToken) !== subjectOf(this.#tokens.accessToken)) {
      location.reload()
      return
    }
    this.#tokens = { ...tokens, endsAt: tokens.endsAt === undefined ? undefined : performance.now() + 10 * 60_000 }
    this.#become({ name: 'signed-in' })
  }

  #expire(): void {
    if (this.#state.name === 'signed-in') this.#become({ name: 'expired' })
  }

  #become(state: SessionState): void {
    this.#state = state
    this.#tell()
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}

export const session = new Session()
