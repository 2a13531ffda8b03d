// Two settings for outgoing mail. The server: `smtp://name:password@host:587`, or `smtps://` for TLS from the first
// byte. The sender: `alcove@example.com` or `Alcove <alcove@example.com>`.
export type SmtpAddress = {
  host: string
  port: number
  /** True: the connection uses TLS from its first byte. False: it uses STARTTLS if the server offers that. */
  isTls: boolean
  /** True if mail may be sent only over TLS: with a password, unless the mail server is on this machine. */
  needsTls: boolean
  credentials: { user: string; pass: string } | undefined
  from: string
}

const isHere = (host: string) => /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The form of a sender: `address` or `name <address>`. Other characters are refused, because the text goes into a mail header. */
const sender =
  /^(?:[\p{L}\p{N} .'_-]{0,100}<[^\s<>@,;:"]{1,64}@[a-z0-9.-]{1,190}>|[^\s<>@,;:"]{1,64}@[a-z0-9.-]{1,190})$/iu

/**
 * Returns the address of the mail server. For a wrong setting, returns a text that shows no password. The caller puts the name
 * of the setting before this text.
 */
export const readSmtpAddress = (url: string, from: string | undefined): SmtpAddress | string => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^smtps?:$/.test(parsed.protocol)) return 'must begin with smtp:// or smtps://'
  const host = parsed.hostname.replace(/^\[|\]$/g, '')
  if (host === '') return 'names no host'
  if (!/^\/?$/.test(parsed.pathname) || parsed.search !== '' || parsed.hash !== '') return 'goes on after host and port'
  const [user, pass] = [decode(parsed.username), decode(parsed.password)]
  if (user === undefined || pass === undefined) return 'has a name or password that is not percent-encoded'
  if (from === undefined || !sender.test(from)) return 'needs ALCOVE_MAIL_FROM beside it, such as alcove@example.com'
  const isTls = parsed.protocol === 'smtps:'
  const credentials = user === '' ? undefined : { user, pass }
  return {
    host,
    port: parsed.port === '' ? (isTls ? 465 : 587) : Number(parsed.port),
    isTls,
    needsTls: credentials !== undefined && !isHere(host),
    credentials,
    from,
  }
}
