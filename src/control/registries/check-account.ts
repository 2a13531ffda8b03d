// Checks the account of an image registry as `docker login` does. The password is sent only to the registry and its token service.
// Redirects are not followed, and errors do not quote the registry's answers.
import { readChallenges, trustedRealm } from '#src/kit/registry-realm.ts'
import { Problem } from '#src/problems.ts'
import { OutboundError } from '../outbound/error.ts'
import type { Outbound } from '../outbound/outbound.ts'

export type Account = { host: string; username: string; password: string }

export type Asking = {
  outbound: Outbound
  /** Whether to connect to the registry without TLS. */
  isPlain: boolean
}

/** Time limit in milliseconds for all requests of one check together. */
const spanMilliseconds = 15_000
const mostBytes = 256 * 1024
const longestToken = 64 * 1024

const baseOf = (host: string, isPlain: boolean): string => {
  if (host === 'docker.io') return 'https://registry-1.docker.io/v2/'
  return `${isPlain ? 'http' : 'https'}://${host}/v2/`
}

const refuse = (why: string, cause?: unknown) => new Problem('bad_request', why, { cause })

const noRegistry = (host: string) => refuse(`${host} does not answer like a registry.`)

const wrongAccount = (host: string) =>
  refuse(`The registry ${host} does not accept this username and password, so nothing was saved.`)

/** All connection failures get the same message, so that callers cannot explore the operator's network. */
const unreached = (host: string, error: unknown): unknown => {
  if (!(error instanceof OutboundError)) return error
  if (error.reason === 'busy') return new Problem('rate_limited', error.message, { cause: error })
  if (error.reason === 'too_large') return noRegistry(host)
  return refuse(
    `The registry ${host} cannot be reached, or does not answer in time. A registry that is not on the public Internet must be allowed by the operator of this server (ALCOVE_PRIVATE_REGISTRIES).`,
    error,
  )
}

const basic = ({ username, password }: Account) => `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

const headerOf = (headers: Record<string, string | string[] | undefined>, name: string): string =>
  [headers[name] ?? []].flat().join(', ')

const tokenIn = (body: Buffer): string | undefined => {
  try {
    const { token, access_token: other } = JSON.parse(body.toString()) as { token?: unknown; access_token?: unknown }
    const found = token ?? other
    return typeof found === 'string' && found.length <= longestToken && /^[\x21-\x7e]+$/.test(found) ? found : undefined
  } catch {
    return undefined
  }
}

/** Throws 400 if the image registry does not accept the account. */
export const checkAccount = async ({ outbound, isPlain }: Asking, account: Account): Promise<void> => {
  const { host } = account
  const end = performance.now() + spanMilliseconds
  const get = (url: string, authorization?: string) =>
    outbound
      .send({
        ...{ method: 'GET', url, mostBytes, requireTls: !isPlain },
        headers: { 'user-agent': 'alcove', ...(authorization === undefined ? {} : { authorization }) },
        timeoutMilliseconds: Math.max(1, Math.ceil(end - performance.now())),
      })
      .catch((error: unknown) => {
        throw unreached(host, error)
      })
  const check = (status: number) => {
    if (status === 200) return
    if (status === 401 || status === 403) throw wrongAccount(host)
    if (status === 429) throw refuse(`The registry ${host} refused the test: too many requests. Try again later.`)
    if (status >= 500)
      throw refuse(`The registry ${host} answered with an error of its own (${status}). Try again later.`)
    throw noRegistry(host)
  }

  const base = baseOf(host, isPlain)
  const open = await get(base)
  if (open.status !== 401) check(open.status)
  const challenges = readChallenges(headerOf(open.headers, 'www-authenticate'))
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer')
  // A registry may accept requests without an account, and still refuse a wrong account. So the account is sent even if the
  // registry did not ask for it.
  if (open.status === 200 || (bearer === undefined && challenges.some(({ scheme }) => scheme === 'basic'))) {
    check((await get(base, basic(account))).status)
    return
  }
  if (bearer === undefined) throw noRegistry(host)

  const { realm = '', service } = bearer.parameters
  const url = trustedRealm(host, realm, isPlain)
  if (url === undefined) {
    throw refuse(
      `The registry ${host} asks for the password at a server of another domain, or without encryption. The password was not sent.`,
    )
  }
  if (service !== undefined) url.searchParams.set('service', service)
  url.searchParams.set('account', account.username)
  const answer = await get(url.href, basic(account))
  check(answer.status === 400 ? 401 : answer.status)
  const token = tokenIn(answer.body)
  if (token === undefined) throw noRegistry(host)
  check((await get(base, `Bearer ${token}`)).status)
}
