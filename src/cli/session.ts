// Who is signed in on the command line: one file that only its owner reads, refreshed when its token is about to end.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { allowInsecureRequests, type Configuration, discovery, None, refreshTokenGrant } from 'openid-client'
import { type Lock, waitForLock } from '#src/kit/lock.ts'
import { Complaint } from '#src/up/complaint.ts'

type Session = {
  /** Base URL of the API, ending in `/api`. */
  apiUrl: string
  issuer: string
  clientId: string
  accessToken: string
  refreshToken?: string | undefined
  /** Milliseconds since 1970. */
  endsAt: number
}

const earlyMilliseconds = 60_000

export const sessionFile = (configDirectory: string): string => join(configDirectory, 'alcove', 'session.json')

/** A draft that only its owner reads takes the place of the file at once, so that it is never half there. */
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
    throw new Complaint(`${file} cannot be read. Sign in again: alcove login`)
  }
}

/** Servers of one's own often speak plain http: the user names the server, and nobody else. */
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

/** Longer than any renewal takes. */
const lockMilliseconds = 60_000

/** A refresh token works once, and used twice it ends the session: of commands that run at once, one has it. */
const sessionLock = (file: string): Promise<Lock> =>
  waitForLock(`${file}.lock`, { timeoutMs: lockMilliseconds }).catch((error: Error) => {
    throw new Complaint(`your session cannot be locked (${error.message})`)
  })

const isFresh = ({ endsAt }: Session): boolean => Date.now() < endsAt - earlyMilliseconds

const knownSession = (file: string): Session => {
  const session = readSession(file)
  if (session === undefined)
    throw new Complaint('you are not signed in: alcove login. For a server of this machine, give its --data DIR')
  return session
}

/** Removes it, so that no other command renews what was taken; `undefined` where nobody is signed in. */
export const takeSession = async (file: string): Promise<Session | undefined> => {
  if (!existsSync(file)) return undefined
  using _lock = await sessionLock(file)
  try {
    return readSession(file)
  } finally {
    rmSync(file, { force: true })
  }
}

/** A session whose token is good for a while yet. */
export const freshSession = async (file: string): Promise<Session> => {
  const session = knownSession(file)
  if (isFresh(session)) return session
  using _lock = await sessionLock(file)
  return await renewed(file, knownSession(file))
}

const renewed = async (file: string, session: Session): Promise<Session> => {
  // Another command has done it meanwhile.
  if (isFresh(session)) return session
  if (session.refreshToken === undefined) throw new Complaint('your session has ended: alcove login')
  try {
    const tokens = await refreshTokenGrant(await discover(session.issuer, session.clientId), session.refreshToken)
    const fresh = asSession(session, tokens)
    // Refresh tokens work once: what came is kept before it is used.
    writeSession(file, fresh)
    return fresh
  } catch (error) {
    throw new Complaint(`your session could not be renewed (${(error as Error).message}): alcove login`)
  }
}
