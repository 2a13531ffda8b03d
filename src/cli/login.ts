// `alcove login` and `alcove logout`. A user of a machine without a browser signs in with a code, which the user enters
// in a browser on another machine.
import { initiateDeviceAuthorization, pollDeviceAuthorizationGrant, tokenRevocation } from 'openid-client'
import { Complaint } from '#src/up/complaint.ts'
import { asSession, discover, takeSession, writeSession } from './session.ts'

type ServerConfig = { oidc: { issuer: string; clientId: string } }

const askServer = async (url: string): Promise<{ apiUrl: string; told: ServerConfig }> => {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Complaint(`${url} is not a URL of a server`)
  const apiUrl = `${url.replace(/\/+$/, '').replace(/\/api$/, '')}/api`
  const reply = await fetch(`${apiUrl}/config`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
  const told = reply?.ok ? ((await reply.json().catch(() => undefined)) as ServerConfig | undefined) : undefined
  if (typeof told?.oidc?.issuer !== 'string') throw new Complaint(`there is no Alcove server at ${url}`)
  return { apiUrl, told }
}

type LoginParts = { url: string; file: string; say: (line: string) => void }

export const login = async ({ url, file, say }: LoginParts): Promise<void> => {
  const { apiUrl, told } = await askServer(url)
  const { issuer, clientId } = told.oidc
  try {
    const configuration = await discover(issuer, clientId)
    const device = await initiateDeviceAuthorization(configuration, { scope: 'openid profile email offline_access' })
    say(
      `Open ${device.verification_uri} in a browser, on any machine, and enter this code:\n\n    ${device.user_code}\n`,
    )
    const tokens = await pollDeviceAuthorizationGrant(configuration, device)
    writeSession(file, asSession({ apiUrl, issuer, clientId }, tokens))
  } catch (error) {
    throw new Complaint(`signing in did not work: ${(error as Error).message}`)
  }
  say('You are signed in.')
}

/** Signs the user out. Always removes the session file. If the issuer can be reached, its token is revoked too. */
export const logout = async ({ file, say }: Omit<LoginParts, 'url'>): Promise<void> => {
  const session = await takeSession(file)
  if (session?.refreshToken !== undefined) {
    const configuration = await discover(session.issuer, session.clientId).catch(() => undefined)
    if (configuration) await tokenRevocation(configuration, session.refreshToken).catch(() => {})
  }
  say(session === undefined ? 'You were not signed in.' : 'You are signed out.')
}
