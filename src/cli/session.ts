// Who is signed in on the command line: one file that only its owner reads, refreshed when its token is about to end.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { allowInsecureRequests, type Configuration, discovery, None, refreshTokenGrant } from 'openid-client'
import { Complaint } from '#src/up/complaint.ts'

export type Session = {
  /** Of the API, ending in `/api`. */
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

export const removeSession = (file: string): void => rmSync(file, { force: true })

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

/** Longer than any renewal takes: whoever holds the lock then was killed. */
const staleMilliseconds = 60_000
const lookMilliseconds = 50

/** A refresh token works once, and used twice it ends the session: of commands that run at once, one renews it. */
const alone = async <T>(file: string, work: () => Promise<T>): Promise<T> => {
  const lock = `${file}.lock`
  while (!isMadeByUs(lock)) {
    const heldSince = statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
    if (Date.now() - heldSince > staleMilliseconds) rmSync(lock, { force: true })
    else await pause(lookMilliseconds)
  }
  try {
    return await work()
  } finally {
    rmSync(lock, { force: true })
  }
}

const isMadeByUs = (lock: string): boolean => {
  try {
    writeFileSync(lock, `${process.pid}\n`, { mode: 0o600, flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new Complaint(`your session could not be renewed (${(error as Error).message})`)
  }
}

const isFresh = ({ endsAt }: Session): boolean => Date.now() < endsAt - earlyMilliseconds

const knownSession = (file: string): Session => {
  const session = readSession(file)
  if (session === undefined) throw new Complaint('you are not signed in: alcove login')
  return session
}

/** A session whose token is good for a while yet. */
export const freshSession = async (file: string): Promise<Session> => {
  const session = knownSession(file)
  return isFresh(session) ? session : await alone(file, () => renewed(file))
}

const renewed = async (file: string): Promise<Session> => {
  const session = knownSession(file)
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
