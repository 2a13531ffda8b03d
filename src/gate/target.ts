// Reads a toolbox URL: which sandbox it names, and the path and query for the toolbox of that sandbox.
import type { IncomingMessage } from 'node:http'
import { Problem } from '#src/problems.ts'
import { type AccessQuestion, type Credential, pathOfSignedFile, type toolboxPort } from '#src/wire/access.ts'
import { sshPath } from '#src/wire/ssh.ts'
import { countsAsActivity, credentialsOf } from './credential.ts'
import { decoded, takeFromQuery } from './query.ts'

export type Target = {
  sandboxIdOrName: string
  /** The part of the URL after the sandbox: path and query, such as `/process/execute?x=1`, without the caller's credential. */
  rest: string
  /** The preview token in the query, for callers that cannot set headers. */
  queryToken: string | undefined
  /** The credential in a signed file URL. */
  signature: Credential | undefined
  /**
   * True if the runner can answer the call without the agent, so that the sandbox may be paused. Such a call does not count
   * as activity.
   */
  onlyLooks: boolean
  /** The toolbox port, if the call came by a signed preview URL of that port. */
  port?: typeof toolboxPort
}

export const authKey = 'DAYTONA_SANDBOX_AUTH_KEY'
export const longestUrl = 16 * 1024
export const longestName = 255
/** Matches a path that contains `.` or `..`, plain or encoded. A server that resolves such a path could reach another sandbox. */
const climbs = /(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\]|$)/i
/** The calls for which a signed URL can be made. */
const signable: readonly string[] = ['GET /files/download', 'POST /files/upload-v2']
const looks: readonly string[] = ['GET /system/metrics']
const signedFields = ['path', 'expires', 'signature']

/**
 * Reads a signed file URL: its credential, and the one toolbox call that the URL allows. The gate builds the URL of the toolbox
 * call (`rest`) from the file's path, whose signature control checks. So the toolbox gets no other path.
 */
const readSignature = (method: string, path: string, query: string) => {
  if (!signable.includes(`${method} ${path}`)) return undefined
  const fields = new URLSearchParams(query)
  const [file, expires, signature] = signedFields.map((name) => {
    const [value, ...more] = fields.getAll(name)
    return more.length === 0 ? value : undefined
  })
  if (file === undefined || expires === undefined || signature === undefined) return undefined
  return {
    credential: { kind: 'file-signature', method, path: file, expires, signature } as const,
    rest: pathOfSignedFile(method, file),
  }
}

/** Turns the absolute URL of a request into a path. The host of that URL replaces the `Host` header (RFC 9112 §3.2.2). */
export const inOriginForm = (request: IncomingMessage): IncomingMessage => {
  const [, host, path = ''] = /^https?:\/\/([^/?#@\\]+)(.*)$/is.exec(request.url ?? '') ?? []
  if (host === undefined) return request
  request.url = path.startsWith('/') ? path : `/${path}`
  request.headers.host = host
  return request
}

/** Reads `/toolbox/{sandboxIdOrName}/…`. Throws a Problem for any other URL. */
export const readTarget = (url: string, method: string): Target => {
  if (url.length > longestUrl) throw new Problem('bad_request', 'The URL is too long.')
  const [, encodedName = '', path = '', query = ''] = /^\/toolbox\/([^/?]+)(\/[^?]*)?(\?.*)?$/s.exec(url) ?? []
  const sandboxIdOrName = decoded(encodedName)
  if (!sandboxIdOrName) throw new Problem('not_found', 'The gate serves /toolbox/{sandboxId}/… and previews only.')
  if (sandboxIdOrName.length > longestName || /[/\0]/.test(sandboxIdOrName) || climbs.test(path)) {
    throw new Problem('not_found', 'Sandbox not found. There is no such sandbox or path.')
  }
  const { values, rest } = takeFromQuery(query, [authKey])
  const signed = readSignature(method, path, rest)
  return {
    sandboxIdOrName,
    rest: signed ? signed.rest : path + rest,
    queryToken: values[authKey],
    signature: signed?.credential,
    onlyLooks: looks.includes(`${method} ${path}`),
  }
}

/** Calls of the SSH gateway accept only an SSH token, and all other calls accept no SSH token. */
const sshCredentials = (headers: Parameters<typeof credentialsOf>[0]): Credential[] =>
  credentialsOf(headers, undefined).flatMap((credential) =>
    credential.kind === 'bearer' ? [{ kind: 'ssh', token: credential.token }] : [],
  )

export const questionOf = (
  headers: Parameters<typeof credentialsOf>[0],
  { sandboxIdOrName, rest, queryToken, signature, onlyLooks, port }: Target,
): AccessQuestion => ({
  sandboxIdOrName,
  credentials: sshPath.test(rest)
    ? sshCredentials(headers)
    : [...credentialsOf(headers, queryToken), ...(signature === undefined ? [] : [signature])],
  ...(port === undefined ? {} : { port }),
  countsAsActivity: !onlyLooks && countsAsActivity(headers),
})
