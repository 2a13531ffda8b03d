// Reads from a request's URL which sandbox it is for, and what is left for that sandbox's toolbox.
import { Problem } from '#src/problems.ts'

export type Target = {
  sandboxIdOrName: string
  /** From after the sandbox to the end, such as `/process/execute?x=1`; without the caller's credential. */
  rest: string
  /** The preview token that came in the query, for callers that cannot set headers. */
  queryToken: string | undefined
}

const authKey = 'DAYTONA_SANDBOX_AUTH_KEY'
const longestUrl = 16 * 1024
const longestName = 255
/** A path that a server behind us might resolve to another sandbox's. */
const climbs = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const takeToken = (query: string) => {
  const kept: string[] = []
  let token: string | undefined
  for (const part of query.split('&')) {
    const [name = '', ...value] = part.split('=')
    if (decoded(name) === authKey) token ??= decoded(value.join('='))
    else kept.push(part)
  }
  return { token: token || undefined, kept: kept.join('&') }
}

/** Throws a Problem for anything but `/toolbox/{sandboxIdOrName}/…`. */
export const readTarget = (url: string): Target => {
  if (url.length > longestUrl) throw new Problem('bad_request', 'The URL is too long.')
  const question = url.indexOf('?')
  const path = question < 0 ? url : url.slice(0, question)
  const [, encodedName = '', rest = ''] = /^\/toolbox\/([^/]+)(\/.*)?$/s.exec(path) ?? []
  const sandboxIdOrName = decoded(encodedName)
  if (!sandboxIdOrName) throw new Problem('not_found', 'The proxy serves /toolbox/{sandboxId}/… only.')
  if (sandboxIdOrName.length > longestName || /[/\0]/.test(sandboxIdOrName) || climbs.test(rest)) {
    throw new Problem('not_found', 'There is no such sandbox or path.')
  }
  if (question < 0) return { sandboxIdOrName, rest, queryToken: undefined }
  const { token, kept } = takeToken(url.slice(question + 1))
  return { sandboxIdOrName, rest: kept === '' ? rest : `${rest}?${kept}`, queryToken: token }
}
