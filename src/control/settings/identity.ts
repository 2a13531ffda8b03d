// The operator's settings for the issuers that sign people in.

/** Returns whether a text can be the URL of an issuer. Plain HTTP is allowed only for an issuer on this machine. */
export const isIssuerUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, search, hash } = new URL(text)
  if (username || password || search || hash) return false
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
}

export type IdentitySettings = {
  /** The issuers whose tokens control accepts. Clients send users to the first one for the sign-in. */
  issuers: readonly string[]
  /** The audience that an issuer's token must have. */
  audience: string
  /** Client id of the programs with which users sign in: the dashboard and the command line. */
  clientId: string
  /** Largest allowed difference, in seconds, between the clock of an issuer and that of control. */
  clockSkewSeconds: number
  /** If a token names an unknown signing key, control reads the issuer's keys again. Minimum seconds between two such reads. */
  keyCooldownSeconds: number
}

/** Reads the settings of the issuers that sign people in. All of these settings are optional. */
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
