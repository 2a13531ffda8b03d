// The session of a user who has signed in on the command line: a file that only this user can read. Renews an access token that
// expires soon.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { allowInsecureRequests, type Configuration, discovery, None, refreshTokenGrant } from 'openid-client'
import { unreachable } from '../call.ts'
import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'
import { waitForLock } from './lock.ts'

export type Session = {
  /** Base URL of the API, ending in `/api`. */
  apiUrl: string
  issuer: string
  clientId: string
  accessToken: string
  refreshToken?: string | undefined
  /** When the access token expires, in milliseconds since 1970. */
  endsAt: number
}

const earlyMilliseconds = 60_000

export const sessionFile = (configDirectory: string): string => join(configDirectory, 'alcove', 'session.json')

/** Writes the session to a temporary file for its owner only, and renames it. So no reader ever sees an incomplete session. */
export const writeSession = (file: string, session: Session): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}

export const readSession = (file: string): Session | undefined => {
  try {
    const session = JSON.parse(readFileSync(file, 'utf8')) as Session
    for (const name of ['apiUrl', 'issuer', 'clientId', 'accessToken'] as const) {
      if (typeof session[name] !== 'string') throw new Error(`it has no ${name}`)
    }
    return session
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Failure(`${file} cannot be read. Sign in again with "alcove login".`, exitCodes.notAllowed)
  }
}

/** Fetches the issuer's endpoints. HTTP without TLS is allowed: private servers use HTTP, and the user has chosen this server. */
export const discover = (issuer: string, clientId: string): Promise<Configuration> =>
  discovery(new URL(issuer), clientId, undefined, None(), {
    execute: issuer.startsWith('http://') ? [allowInsecureRequests] : [],
    timeout: 10,
  })

export const asSession = (
  before: Omit<Session, 'accessToken' | 'refreshToken' | 'endsAt'> & { refreshToken?: string | undefined },
  tokens: { access_token: string; refresh_token?: string; expires_in?: number | undefined },
): Session => ({
  apiUrl: before.apiUrl,
  issuer: before.issuer,
  clientId: before.clientId,
  accessToken: tokens.access_token,
  refreshToken: tokens.refresh_token ?? before.refreshToken,
  endsAt: Date.now() + (tokens.expires_in ?? 300) * 1000,
})

/** How long a command waits for the lock, in ms: longer than a renewal of the session ever takes. */
const lockMilliseconds = 60_000

/** Only one command at a time may use the refresh token, because a refresh token that is used twice ends the session. */
const sessionLock = (file: string): Promise<Disposable> =>
  waitForLock(`${file}.busy`, lockMilliseconds).catch((error: Error) => {
    throw new Failure(`Your session cannot be locked (${error.message}).`, exitCodes.localFile)
  })

const isFresh = ({ endsAt }: Session): boolean => Date.now() < endsAt - earlyMilliseconds

const knownSession = (file: string): Session => {
  const session = readSession(file)
  if (session === undefined)
    throw new Failure('You are not signed in. Sign in with "alcove login --url URL".', exitCodes.notAllowed)
  return session
}

/** Removes the session file and returns its content. The lock prevents that another command renews the session meanwhile. */
export const takeSession = async (file: string): Promise<Session | undefined> => {
  if (!existsSync(file)) return undefined
  using _lock = await sessionLock(file)
  try {
    return readSession(file)
  } finally {
    rmSync(file, { force: true })
  }
}

/** Returns the session. If its access token expires soon, the session is renewed first. */
export const freshSession = async (file: string): Promise<Session> => {
  const session = knownSession(file)
  if (isFresh(session)) return session
  using _lock = await sessionLock(file)
  return await renewed(file, knownSession(file))
}

const signInAgain = ({ apiUrl }: Session) => `Sign in again: alcove login --url ${cleanLine(apiUrl)}`

const renewed = async (file: string, session: Session): Promise<Session> => {
  // Another command may have renewed the session while this command waited for the lock.
  if (isFresh(session)) return session
  if (session.refreshToken === undefined)
    throw new Failure(`Your session has ended. ${signInAgain(session)}`, exitCodes.notAllowed)
  try {
    const tokens = await refreshTokenGrant(await discover(session.issuer, session.clientId), session.refreshToken)
    const fresh = asSession(session, tokens)
    // The renewal has made the old refresh token invalid. So the new session is saved before anything else can fail.
    writeSession(file, fresh)
    return fresh
  } catch (error) {
    // If the server did not answer, the session may still be valid, so the user is not asked to sign in again.
    if (error instanceof TypeError || (error as Error).name === 'TimeoutError')
      throw unreachable(new URL(session.issuer).origin, error as Error)
    const reason = cleanLine((error as Error).message)
    throw new Failure(`Your session could not be renewed (${reason}). ${signInAgain(session)}`, exitCodes.notAllowed)
  }
}
