// Access to the portal, the web page on which an organization manages its webhooks. A link works once, and only for 10
// minutes. The browser then has a session of one hour, in a cookie. Link and session end when their user is neither owner
// nor operator any more, or when the API key that made the link is deleted.
import { randomBytes } from 'node:crypto'
import { isMakerGone } from '#src/control/auth/maker.ts'
import { hashKey, isSameHash } from '#src/control/auth/secret.ts'
import type { Parts } from '#src/control/parts.ts'
import { Problem } from '#src/problems.ts'
import type { PortalAccess } from '../provider.ts'

export const portalPath = '/api/webhooks/portal'

const linkMinutes = 10
const sessionMinutes = 60
/** Maximum number of links and sessions, counted together, of one user in one organization. */
const mostPerUser = 100

type TokenParts = Pick<Parts, 'database' | 'clock' | 'settings'>
type Who = { organizationId: string; userId: string; makerHash: string | null }

export type Session = Omit<Who, 'makerHash'> & { organizationName: string; userEmail: string; token: string }

const isToken = (text: string) => /^[\w-]{43}$/.test(text)

const write = async ({ database, clock }: TokenParts, kind: 'link' | 'session', who: Who, minutes: number) => {
  const token = randomBytes(32).toString('base64url')
  const expiresAt = new Date(clock.now().getTime() + minutes * 60_000)
  const insert = database.sql`
    insert into webhook_portal_tokens (hash, kind, organization_id, user_id, maker_hash, expires_at)
    values (${hashKey(token)}, ${kind}, ${who.organizationId}, ${who.userId}, ${who.makerHash},
            least(${expiresAt}, (select expires_at from api_keys where hash = ${who.makerHash})))`
  await insert.catch((error: unknown) => {
    throw isMakerGone(error) ? new Problem('unauthorized', undefined, { cause: error }) : error
  })
  await database.sql`
    delete from webhook_portal_tokens where hash in (
      select hash from webhook_portal_tokens
      where organization_id = ${who.organizationId} and user_id = ${who.userId} and hash <> ${hashKey(token)}
      order by created_at desc offset ${mostPerUser - 1} for update skip locked)`
  return token
}

export const openLink = async (parts: TokenParts, who: Who): Promise<PortalAccess> => {
  const token = await write(parts, 'link', who, linkMinutes)
  return { token, url: `${parts.settings.publicUrl}${portalPath}?token=${token}` }
}

/**
 * Turns a link into a session. Returns the session's token, or `undefined` if the link was used, has expired or never
 * existed.
 */
export const exchangeLink = async (parts: TokenParts, link: string): Promise<string | undefined> => {
  if (!isToken(link)) return undefined
  const [who] = await parts.database.sql<Who[]>`
    delete from webhook_portal_tokens
    where hash = ${hashKey(link)} and kind = 'link' and expires_at > ${parts.clock.now()}
    returning organization_id as "organizationId", user_id as "userId", maker_hash as "makerHash"`
  return who && (await write(parts, 'session', who, sessionMinutes))
}

export const findSession = async ({ database, clock }: TokenParts, token: string): Promise<Session | undefined> => {
  if (!isToken(token)) return undefined
  const [found] = await database.sql<Omit<Session, 'token'>[]>`
    select tokens.organization_id as "organizationId", tokens.user_id as "userId", organizations.name as "organizationName",
      users.email as "userEmail"
    from webhook_portal_tokens tokens
      join organizations on organizations.id = tokens.organization_id join users on users.id = tokens.user_id
      left join members using (organization_id, user_id)
    where hash = ${hashKey(token)} and kind = 'session' and expires_at > ${clock.now()}
      and (members.role = 'owner' or users.system_role = 'admin')`
  return found && { ...found, token }
}

export const cookieName = 'alcove_webhooks'

/**
 * Returns the cookie of a session. SameSite is Lax, because links on other sites open the page. Changes also need the CSRF
 * token of `formWord`.
 */
export const cookieOf = (token: string, publicUrl: string): string =>
  [
    `${cookieName}=${token}`,
    `Path=${portalPath}`,
    `Max-Age=${sessionMinutes * 60}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(publicUrl.startsWith('https:') ? ['Secure'] : []),
  ].join('; ')

/** Returns the CSRF token of a session. Every form of the portal contains this token, which pages of other sites cannot read. */
export const formWord = ({ token }: Session): string => hashKey(`form:${token}`)

export const isFormWord = (session: Session, given: string): boolean => isSameHash(formWord(session), given)
