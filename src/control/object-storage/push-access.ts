// Credentials for uploading the files of a definition. They are valid for an hour, in one organization, and only while the
// caller may create snapshots or sandboxes there. The credentials are not stored in the database: an encrypted session token
// contains their limits.

import { randomBytes } from 'node:crypto'
import type { Caller } from '#src/control/auth/route.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import { findSharedRunner } from '#src/control/runners/service.ts'
import { UnreadableSecret } from '#src/control/storage/encryption.ts'
import { Problem } from '#src/problems.ts'
import { contextBucket, contextRegion, type UploadAccess, type UploadQuestion } from '#src/wire/contexts.ts'
import type { RunningParts } from '../running.ts'

const purpose = 'push-access'
const lastsMs = 60 * 60_000

type Grant = {
  accessKey: string
  secret: string
  organizationId: string
  userId: string
  keyHash?: string
  expiresAt: number
}

const mayPush = ({ permissions }: Caller): boolean =>
  permissions.has('write:snapshots') || permissions.has('write:sandboxes')

export const grantPushAccess = (parts: RunningParts, caller: Caller) => {
  const { encryption, clock, settings } = parts
  checkNotSuspended(parts, caller)
  if (!mayPush(caller)) throw new Problem('forbidden', 'This needs the permission write:snapshots or write:sandboxes.')
  const { user, organization, keyHash } = caller
  const grant: Grant = {
    accessKey: `ALCV${randomBytes(8).toString('hex').toUpperCase()}`,
    secret: randomBytes(30).toString('base64url'),
    organizationId: organization.id,
    userId: user.id,
    ...(keyHash === undefined ? {} : { keyHash }),
    expiresAt: clock.now().getTime() + lastsMs,
  }
  return {
    accessKey: grant.accessKey,
    secret: grant.secret,
    sessionToken: encryption.encrypt(purpose, JSON.stringify(grant)),
    storageUrl: settings.proxyUrl,
    organizationId: organization.id,
    bucket: contextBucket,
    region: contextRegion,
  }
}

const readGrant = ({ encryption }: RunningParts, sessionToken: string): Grant | undefined => {
  try {
    return JSON.parse(encryption.decrypt(purpose, sessionToken)) as Grant
  } catch (error) {
    if (error instanceof UnreadableSecret) return undefined
    throw error
  }
}

/**
 * Returns what the gate needs to check the signature of an upload. The gate asks for every part of an upload and caches
 * nothing, so revoked credentials stop working within a second.
 */
export const answerUpload = async (
  parts: RunningParts,
  { accessKey, sessionToken }: UploadQuestion,
): Promise<UploadAccess> => {
  const grant = readGrant(parts, sessionToken)
  if (grant === undefined || grant.accessKey !== accessKey) throw new Problem('unauthorized')
  if (grant.expiresAt <= parts.clock.now().getTime()) throw new Problem('gone', 'These credentials have expired.')
  const caller = await parts.callers.findAgain(grant)
  const isStill = caller !== undefined && caller.organization.id === grant.organizationId && mayPush(caller)
  if (!isStill) throw new Problem('unauthorized')
  checkNotSuspended(parts, caller)
  const { organizationId, secret } = grant
  const runner = await findSharedRunner(parts.database.sql, caller.organization.defaultRegionId)
  if (runner === undefined) throw new Problem('unavailable', 'No runner is available to store the files.')
  const { address: runnerAddress, gateId } = runner
  return { organizationId, secret, runnerAddress, ...(gateId !== null && { gateId }) }
}
