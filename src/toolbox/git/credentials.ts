// Credentials for one call. A single git process has them in its environment, and a credential helper passes them on to git. No
// file, argument or remote's URL contains them.
//
// During the call, other processes of the sandbox's user, including hooks, can read the credentials. A caller that gives a password
// to a sandbox trusts these processes.
import { Problem } from '#src/problems.ts'
import type { GitOptions } from './run-git.ts'
import { type Account, given } from './schemas.ts'

type Credentials = { username: string; password: string }

const names = { username: 'ALCOVE_GIT_USERNAME', password: 'ALCOVE_GIT_PASSWORD' } as const

/**
 * The credential helper, which git runs with `get`, `store` or `erase`. Process lists do not show arguments of `printf`, a builtin
 * of every sh.
 */
const helper = `!f() { if test "$1" = get; then printf 'username=%s\\npassword=%s\\n' "$${names.username}" "$${names.password}"; fi; }; f`

const parse = (url: string): URL | undefined => (URL.canParse(url) ? new URL(url) : undefined)

const isHttp = (url: URL) => url.protocol === 'http:' || url.protocol === 'https:'

/** The origin of a URL, `https://host:port`; `undefined` for a URL that git does not reach over HTTP. */
export const originOf = (url: string): string | undefined => {
  const parsed = parse(url)
  return parsed && isHttp(parsed) ? `${parsed.protocol}//${parsed.host}` : undefined
}

/**
 * Options that set our credential helper only for the hosts of `urls`. A redirect or a submodule may lead to other hosts. A
 * `helper` option without a value disables the sandbox's own helpers. For example, the helper `store` would save the credentials in
 * a file.
 */
export const optionsFor = (credentials: Credentials | undefined, urls: readonly string[]): GitOptions => {
  const origins = new Set(urls.map(originOf).filter((origin) => origin !== undefined))
  if (credentials === undefined || origins.size === 0) return {}
  return {
    settings: [...origins].flatMap((origin) => [
      `credential.${origin}.helper=`,
      `credential.${origin}.helper=${helper}`,
    ]),
    env: { [names.username]: credentials.username, [names.password]: credentials.password },
  }
}

/** The credentials of a request. A token without a user name gets the name `git`, because most hosts accept any name. */
export const credentialsOf = (account: Account): Credentials | undefined => {
  const username = given(account.username)
  const password = given(account.password)
  return username === undefined && password === undefined
    ? undefined
    : { username: username ?? 'git', password: password ?? '' }
}

const decode = (part: string) => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Splits `https://name:password@host` into the URL and its credentials. */
export const splitUrl = (url: string): { url: string; credentials?: Credentials } => {
  const parsed = parse(url)
  if (!parsed || (parsed.username === '' && parsed.password === '')) return { url }
  if (!isHttp(parsed)) {
    if (parsed.password === '') return { url }
    throw new Problem('bad_request', 'body.url must not hold a password')
  }
  const credentials = { username: decode(parsed.username), password: decode(parsed.password) }
  if (/[\x00-\x1f\x7f]/.test(credentials.username + credentials.password)) {
    throw new Problem('bad_request', 'body.url must not hold control characters')
  }
  parsed.username = ''
  parsed.password = ''
  return { url: parsed.href, credentials }
}
