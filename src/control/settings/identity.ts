// What the operator says of those who sign people in.

/** Plain http is for an issuer on this machine only. */
export const isIssuerUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, search, hash } = new URL(text)
  if (username || password || search || hash) return false
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
}

export type IdentitySettings = {
  /** Whose tokens are believed; the first is the one that clients are told of. */
  issuers: readonly string[]
  /** What a token must be made for. */
  audience: string
  /** Client id of programs that sign in people: the dashboard, the command line. */
  clientId: string
  /** By how much the clocks of an issuer and of ours may differ. */
  clockSkewSeconds: number
  /** An issuer is asked for its keys again, because a token names an unknown one, only so long after it was last asked. */
  keyCooldownSeconds: number
}

/** Each of these may be left out. */
export const readIdentity = (
  optional: (name: string) => string | undefined,
  complain: (sentence: string) => void,
): IdentitySettings => {
  const issuers = (optional('ALCOVE_OIDC_ISSUER') ?? '').split(',').flatMap((text) => text.trim() || [])
  if (!issuers.every(isIssuerUrl)) {
    complain('ALCOVE_OIDC_ISSUER is not usable: URLs of issuers with commas between; https, or http on this machine')
  }
  const skew = optional('ALCOVE_OIDC_CLOCK_SKEW_SECONDS') ?? '30'
  if (!/^\d{1,3}$/.test(skew)) complain('ALCOVE_OIDC_CLOCK_SKEW_SECONDS is not usable: 0 to 999')
  return {
    issuers: [...new Set(issuers)],
    audience: optional('ALCOVE_OIDC_AUDIENCE') ?? 'alcove',
    clientId: optional('ALCOVE_OIDC_CLIENT_ID') ?? 'alcove',
    clockSkewSeconds: Number(skew),
    keyCooldownSeconds: 30,
  }
}
