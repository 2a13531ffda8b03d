// The URLs of previews. A plain URL works only with a credential. A signed URL works without a credential until it expires.
import { randomInt } from 'node:crypto'
import type { Caller } from '#src/control/auth/route.ts'
import { hashKey } from '#src/control/auth/secret.ts'
import { getSandbox } from '#src/control/sandboxes/service.ts'
import { Problem } from '#src/problems.ts'
import { reservedPorts, signedToken, toolboxPort } from '#src/wire/access.ts'
import type { RunningParts } from '../running.ts'
import { previewUrl } from './preview-template.ts'
import { previewTokenFor } from './preview-tokens.ts'
import {
  countSignedPreviews,
  expireSignedPreview,
  forgetSignedPreviews,
  insertSignedPreview,
} from './signed-previews.ts'

/** Maximum number of valid signed URLs of a sandbox. */
const mostSignedUrls = 1000
/**
 * Minimum milliseconds for which the row of an expired signed URL stays. Meanwhile, connections that were opened with the URL may
 * continue.
 */
const keptMs = 86_400_000
const tokenLength = 16
const tokenLetters = 'abcdefghijklmnopqrstuvwxyz0123456789'

const newToken = () => Array.from({ length: tokenLength }, () => tokenLetters[randomInt(tokenLetters.length)]).join('')

/** Converts a text to a port number. Throws 400 for other texts, and for reserved ports except the toolbox's. */
export const readPort = (text: string): number => {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new Problem('bad_request', 'params.port must be a port from 1 to 65535')
  if (reservedPorts.includes(port) && port !== toolboxPort)
    throw new Problem('bad_request', `Port ${port} is reserved; it has no preview.`)
  return port
}

export const getPreviewUrl = async (
  { database, settings }: RunningParts,
  { organization, keyHash }: Caller,
  idOrName: string,
  portText: string,
) => {
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const port = readPort(portText)
  return {
    sandboxId: sandbox.id,
    url: previewUrl(settings.proxyUrl, sandbox.id, port),
    token: await previewTokenFor(database.sql, sandbox, keyHash),
  }
}

export const signPreviewUrl = async (
  { database, clock, settings }: RunningParts,
  { organization, keyHash }: Caller,
  idOrName: string,
  portText: string,
  expiresInSeconds: number,
) => {
  const { id } = await getSandbox(database.sql, organization.id, idOrName)
  const port = readPort(portText)
  const now = clock.now()
  await forgetSignedPreviews(database.sql, new Date(now.getTime() - keptMs))
  if ((await countSignedPreviews(database.sql, id, now)) >= mostSignedUrls) {
    throw new Problem('rate_limited', `A sandbox may have ${mostSignedUrls} signed preview URLs at a time.`)
  }
  const token = newToken()
  await insertSignedPreview(database.sql, {
    token_hash: hashKey(token),
    sandbox_id: id,
    port,
    created_at: now,
    expires_at: new Date(now.getTime() + expiresInSeconds * 1000),
    maker_hash: keyHash ?? null,
  })
  return { sandboxId: id, port, token, url: previewUrl(settings.proxyUrl, token, port) }
}

/**
 * Revokes a signed URL. Control then refuses calls with this URL, and connections that were opened with the URL end.
 */
export const expirePreviewUrl = async (
  { database }: RunningParts,
  organizationId: string,
  idOrName: string,
  portText: string,
  token: string,
): Promise<void> => {
  const { id } = await getSandbox(database.sql, organizationId, idOrName)
  const port = readPort(portText)
  const isKnown = signedToken.test(token) && (await expireSignedPreview(database.sql, hashKey(token), id, port))
  if (!isKnown) throw new Problem('not_found', 'There is no such signed preview URL.')
}
