// The session of a signed-in user of the command line: one file that only its owner reads. An expiring token is refreshed.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { allowInsecureRequests, type Configuration, discovery, None, refreshTokenGrant } from 'openid-client'
import { type Lock, waitForLock } from '#src/kit/lock.ts'
import { loginCommand } from '#src/up/command-for.ts'
import { Complaint } from '#src/up/complaint.ts'

type Session = {
  /** Base URL of the API, ending in `/api`. */
  apiUrl: string
  issuer: string
  clientId: string
  accessToken: string
  refreshToken?: string | undefined
  /** Time when the access token expires, in milliseconds since 1970. */
  endsAt: number
}

const earlyMilliseconds = 60_000

export const sessionFile = (configDirectory: string): string => join(configDirectory, 'alcove', 'session.json')

/**
 * Writes the session to a new file that only its owner may read. Renaming that file replaces the old session, so the
 * session file is always complete.
 */
export const writeSession = (file: string, session: Session): void => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(session, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(draft, 0o600)
  renameSync(draft, file)
}

export const readSession = (file: string): Session | undefined => {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Session
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new Complaint(`${file} cannot be read. Sign in again with "alcove login"`)
  }
}

/** Finds the issuer's endpoints. Allows plain http, because private servers often use it and the user chose the server. */
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

/** How long to wait for the lock, in ms: longer than any renewal of a session. */
const lockMilliseconds = 60_000

/** Locks the session. A refresh token used twice ends the session, so only one command at a time may use it. */
const sessionLock = (file: string): Promise<Lock> =>
  waitForLock(`${file}.lock`, { timeoutMs: lockMilliseconds }).catch((error: Error) => {
    throw new Complaint(`your session cannot be locked (${error.message})`)
  })

const isFresh = ({ endsAt }: Session): boolean => Date.now() < endsAt - earlyMilliseconds

const knownSession = (file: string): Session => {
  const session = readSession(file)
  if (session === undefined)
    throw new Complaint(
      'you are not signed in. Sign in with "alcove login --url URL"; for a server of this machine give its --data DIR',
    )
  return session
}

/** Removes and returns the session under the lock, so that no command renews it. `undefined` if nobody is signed in. */
export const takeSession = async (file: string): Promise<Session | undefined> => {
  if (!existsSync(file)) return undefined
  using _lock = await sessionLock(file)
  try {
    return readSession(file)
  } finally {
    rmSync(file, { force: true })
  }
}

/** Returns a session whose token does not expire soon. */
export const freshSession = async (file: string): Promise<Session> => {
  const session = knownSession(file)
  if (isFresh(session)) return session
  using _lock = await sessionLock(file)
  return await renewed(file, knownSession(file))
}

const renewed = async (file: string, session: Session): Promise<Session> => {
  // Another command has renewed the session while this command waited for the lock.
  if (isFresh(session)) return session
  if (session.refreshToken === undefined)
    throw new Complaint(`your session has ended. Sign in again: ${loginCommand(session.apiUrl)}`)
  try {
    const tokens = await refreshTokenGrant(await discover(session.issuer, session.clientId), session.refreshToken)
    const fresh = asSession(session, tokens)
    // A refresh token works only once. The new session is therefore written before its token is used.
    writeSession(file, fresh)
    return fresh
  } catch (error) {
    throw new Complaint(
      `your session could not be renewed (${(error as Error).message}). Sign in again: ${loginCommand(session.apiUrl)}`,
    )
  }
}
