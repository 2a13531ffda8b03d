// Finds out which server a command uses, and with which credential.
import { homedir } from 'node:os'
import { join } from 'node:path'
import { exitCodes, Failure } from '../failure.ts'
import { apiUrlOf } from './api-url.ts'
import { freshSession, readSession, sessionFile } from './session.ts'

/** The address of a server, and the credential for it. */
export type Access = {
  /** Base URL of the API, ending in `/api`. */
  apiUrl: string
  /** Returns a valid credential. An access token that expires soon is renewed first. */
  token: () => Promise<string>
}

export const defaultServer = 'http://127.0.0.1:4600'

/** Returns the path of the file in which `alcove login` stores the session. */
export const ownSessionFile = (env: NodeJS.ProcessEnv): string => {
  // Ignores a relative path, as the XDG Base Directory Specification demands.
  const configured = env['XDG_CONFIG_HOME']
  return sessionFile(configured?.startsWith('/') ? configured : join(homedir(), '.config'))
}

const withKey = (url: string, given: string): Access => {
  const key = given.trim()
  // A key with a space or a non-ASCII character is refused here, because the error of `fetch` would show the key.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new Failure('The API key contains characters that no key has. Copy it again.', exitCodes.usage)
  return { apiUrl: apiUrlOf(url), token: async () => key }
}

/** DAYTONA_API_KEY counts only together with DAYTONA_API_URL, because it must not be sent to any other server. */
const accessByVariables = (env: NodeJS.ProcessEnv): Access | undefined => {
  const key = env['ALCOVE_API_KEY']
  if (key) return withKey(env['ALCOVE_API_URL'] || defaultServer, key)
  const [sdkUrl, sdkKey] = [env['DAYTONA_API_URL'], env['DAYTONA_API_KEY']]
  return sdkUrl && sdkKey && !env['ALCOVE_API_URL'] ? withKey(sdkUrl, sdkKey) : undefined
}

/** Returns the access token of the stored session. Throws if the user has signed in to another server in the meantime. */
const freshToken = async (file: string, apiUrl: string): Promise<string> => {
  const session = await freshSession(file)
  if (session.apiUrl === apiUrl) return session.accessToken
  throw new Failure('You have signed in to another server since this command started.', exitCodes.notAllowed)
}

const accessBySession = (env: NodeJS.ProcessEnv): Access | undefined => {
  const file = ownSessionFile(env)
  const session = readSession(file)
  if (session === undefined) return undefined
  const url = env['ALCOVE_API_URL']
  if (url && apiUrlOf(url) !== session.apiUrl) return undefined
  return { apiUrl: session.apiUrl, token: () => freshToken(file, session.apiUrl) }
}

/**
 * Returns the user's access from environment variables or, without them, from the session of `alcove login`. Undefined if there is
 * neither.
 */
export const findAccess = (env: NodeJS.ProcessEnv): Access | undefined => accessByVariables(env) ?? accessBySession(env)

export const notSignedIn = (more = ''): Failure => {
  const sentence = 'You are not signed in. Set ALCOVE_API_URL and ALCOVE_API_KEY, or run "alcove login --url URL".'
  return new Failure(`${sentence} ${more}`.trim(), exitCodes.notAllowed)
}
