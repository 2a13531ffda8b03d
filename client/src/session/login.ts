// `alcove login` and `alcove logout`. Without a browser on this machine, the user enters a code in a browser on another machine.
import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant, tokenRevocation } from 'openid-client'
import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'
import { apiUrlOf } from './api-url.ts'
import { asSession, discover, takeSession, writeSession } from './session.ts'

type ServerConfig = { oidc: { issuer: string; clientId: string } }

const askServer = async (url: string): Promise<{ apiUrl: string; told: ServerConfig }> => {
  const apiUrl = apiUrlOf(url)
  const reply = await fetch(`${apiUrl}/config`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
  const told = reply?.ok ? ((await reply.json().catch(() => undefined)) as ServerConfig | undefined) : undefined
  if (typeof told?.oidc?.issuer !== 'string')
    throw new Failure(`There is no Alcove server at ${cleanLine(url)}.`, exitCodes.unreachable)
  return { apiUrl, told }
}

type LoginParts = { url: string; file: string; say: (line: string) => void; signal?: AbortSignal | undefined }

export const login = async ({ url, file, say, signal }: LoginParts): Promise<void> => {
  const { apiUrl, told } = await askServer(url)
  const { issuer, clientId } = told.oidc
  try {
    const configuration = await discover(issuer, clientId)
    const device = await initiateDeviceAuthorization(configuration, { scope: 'openid profile email offline_access' })
    const [address, code] = [cleanLine(device.verification_uri), cleanLine(device.user_code)]
    say(`Open ${address} in a browser, on any machine, and enter this code:\n\n    ${code}\n`)
    const tokens = await pollDeviceAuthorizationGrant(configuration, device, undefined, signal ? { signal } : undefined)
    writeSession(file, asSession({ apiUrl, issuer, clientId }, tokens))
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    throw new Failure(`Signing in did not work: ${cleanLine((error as Error).message)}`, exitCodes.notAllowed)
  }
  say('You are signed in.')
}

/** Signs the user out. Always removes the session file. Revokes the refresh token too, if the issuer can be reached. */
export const logout = async ({ file, say }: Omit<LoginParts, 'url'>): Promise<void> => {
  const session = await takeSession(file)
  if (session?.refreshToken !== undefined) {
    const configuration = await discover(session.issuer, session.clientId).catch(() => undefined)
    if (configuration) await tokenRevocation(configuration, session.refreshToken).catch(() => {})
  }
  say(session === undefined ? 'You were not signed in.' : 'You are signed out.')
}
