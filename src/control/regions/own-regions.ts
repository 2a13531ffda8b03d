// An organization's own regions, and the credentials of their services: a proxy, an SSH gateway and a snapshot manager. Only a
// service with a URL can have a credential. A credential is shown only once, and a new credential replaces the old one.
import { randomBytes } from 'node:crypto'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange, type Callers } from '../auth/callers.ts'
import { hashKey, newKey } from '../auth/secret.ts'
import type { Parts } from '../parts.ts'
import { forgetSandboxesIn, hasLiveSandboxesIn, writeOtelEndpointIn } from '../sandboxes/service.ts'
import { readServiceUrl } from '../service-url.ts'
import { isDuplicate, type Transaction } from '../storage/database.ts'
import { forgetVolumesIn, hasVolumesIn } from '../volumes/service.ts'
import {
  countOwnRegions,
  deleteRegion,
  hasRunners,
  insertRegion,
  lockOwnRegion,
  type OwnRegion,
  type RegionColumns,
  writeRegion,
} from './store.ts'

export type OwnRegionParts = Pick<Parts, 'database' | 'clock' | 'encryption'> & { callers: Callers }

const mostPerOrganization = 100

/** For each URL of a region: its field in request bodies, and its database column. */
const addresses = {
  proxyUrl: 'proxy_url',
  sshGatewayUrl: 'ssh_gateway_url',
  snapshotManagerUrl: 'snapshot_manager_url',
  otelEndpoint: 'otel_endpoint',
} as const satisfies Record<string, keyof RegionColumns>

type Field = keyof typeof addresses
type Addresses = { [F in Field]?: string | null }

const readAddresses = (body: Addresses): Addresses => {
  const fields = (Object.keys(addresses) as Field[]).filter((field) => body[field] !== undefined)
  return Object.fromEntries(
    fields.map((field) => [field, body[field] === null ? null : readServiceUrl(field, body[field] as string)]),
  )
}

const purposeOf = (regionId: string) => `snapshot-manager:${regionId}`

const newCredentials = () => ({
  username: `alcove-${randomBytes(6).toString('hex')}`,
  password: randomBytes(32).toString('base64url'),
})

type Credentials = ReturnType<typeof newCredentials>

const columnsOf = ({ encryption }: OwnRegionParts, regionId: string, { username, password }: Credentials) => ({
  snapshot_manager_username: username,
  snapshot_manager_password: encryption.encrypt(purposeOf(regionId), password),
})

/** Returns the columns to set to null: the credentials of each service whose URL was removed. */
const revoked = ({ proxyUrl, sshGatewayUrl, snapshotManagerUrl }: Addresses): Partial<RegionColumns> => ({
  ...(proxyUrl === null ? { proxy_key_hash: null } : {}),
  ...(sshGatewayUrl === null ? { ssh_gateway_key_hash: null } : {}),
  ...(snapshotManagerUrl === null ? { snapshot_manager_username: null, snapshot_manager_password: null } : {}),
})

const longestNameInId = 200

const newIdOf = (name: string) => `${name.toLowerCase().slice(0, longestNameInId)}_${randomBytes(5).toString('hex')}`

export const createRegion = async (
  parts: OwnRegionParts,
  organizationId: string,
  { name, ...body }: Addresses & { name: string },
) => {
  const { database, clock } = parts
  if (!/^[A-Za-z0-9_.-]+$/.test(name))
    throw new Problem('bad_request', 'name may only hold letters, digits, dots, dashes and underscores')
  const given = readAddresses(body)
  const id = newIdOf(name)
  const proxyApiKey = given.proxyUrl ? newKey() : null
  const sshGatewayApiKey = given.sshGatewayUrl ? newKey() : null
  const credentials = given.snapshotManagerUrl ? newCredentials() : undefined
  const region = {
    id,
    name,
    organization_id: organizationId,
    ...writtenAddresses(given),
    proxy_key_hash: proxyApiKey && hashKey(proxyApiKey),
    ssh_gateway_key_hash: sshGatewayApiKey && hashKey(sshGatewayApiKey),
    ...(credentials ? columnsOf(parts, id, credentials) : {}),
  }
  try {
    await database.transaction(async (transaction) => {
      const count = await countOwnRegions(transaction, organizationId)
      if (count === undefined) throw new Problem('not_found')
      if (count >= mostPerOrganization)
        throw new Problem('forbidden', `An organization can have at most ${mostPerOrganization} regions of its own.`)
      await insertRegion(transaction, region, clock.now())
    })
  } catch (error) {
    if (isDuplicate(error))
      throw new Problem('already_exists', `A region named "${name}" already exists.`, { cause: error })
    throw error
  }
  return {
    id,
    proxyApiKey,
    sshGatewayApiKey,
    snapshotManagerUsername: credentials?.username ?? null,
    snapshotManagerPassword: credentials?.password ?? null,
  }
}

const writtenAddresses = (given: Addresses): Partial<RegionColumns> =>
  Object.fromEntries(Object.entries(given).map(([field, value]) => [addresses[field as Field], value]))

/** Changes a region of the organization while its row is locked. Throws 404 for any other region. */
const changeOwn = async (
  { database, clock }: OwnRegionParts,
  { organizationId, id }: { organizationId: string; id: string },
  change: (region: OwnRegion, transaction: Transaction) => Partial<RegionColumns> | Promise<Partial<RegionColumns>>,
): Promise<void> => {
  await database.transaction(async (transaction) => {
    const columns = await change(await getOwn(transaction, organizationId, id), transaction)
    await writeRegion(transaction, id, columns, clock.now())
  })
}

const getOwn = async (transaction: Transaction, organizationId: string, id: string): Promise<OwnRegion> => {
  const region = await lockOwnRegion(transaction, organizationId, id)
  if (region === undefined) throw new Problem('not_found', 'There is no such region.')
  return region
}

type Named = { organizationId: string; id: string }

/**
 * Changes the URLs of a region's services and of its telemetry endpoint. Removing the URL of a service revokes its
 * credential. A new service gets a credential from `regenerateKey` or `regenerateCredentials`.
 */
export const changeRegion = async (parts: OwnRegionParts, named: Named, body: Addresses): Promise<void> => {
  const given = readAddresses(body)
  await changeOwn(parts, named, async (_, transaction) => {
    const { otelEndpoint } = given
    if (otelEndpoint !== undefined) await writeOtelEndpointIn(transaction, named.id, otelEndpoint)
    return { ...writtenAddresses(given), ...revoked(given) }
  })
}

const checkHasAddress = (region: OwnRegion, field: Field): void => {
  if (region[addresses[field]] === null) throw new Problem('bad_request', `This region has no ${field}.`)
}

const services = {
  proxy: ['proxyUrl', 'proxy_key_hash'],
  'ssh-gateway': ['sshGatewayUrl', 'ssh_gateway_key_hash'],
} as const

export const regenerateKey = async (parts: OwnRegionParts, named: Named, service: keyof typeof services) => {
  const [field, column] = services[service]
  const apiKey = newKey()
  await changeOwn(parts, named, (region) => {
    checkHasAddress(region, field)
    return { [column]: hashKey(apiKey) }
  })
  return { apiKey }
}

export const regenerateCredentials = async (parts: OwnRegionParts, named: Named): Promise<Credentials> => {
  const credentials = newCredentials()
  await changeOwn(parts, named, (region) => {
    checkHasAddress(region, 'snapshotManagerUrl')
    return columnsOf(parts, named.id, credentials)
  })
  return credentials
}

/** Deletes a region that has no sandboxes, no runners and no volumes. The organization may then have no default region. */
export const removeRegion = async (parts: OwnRegionParts, { organizationId, id }: Named): Promise<void> => {
  const { database, callers } = parts
  try {
    await database.transaction(async (transaction) => {
      await getOwn(transaction, organizationId, id)
      if (await hasRunners(transaction, id)) throw new Problem('bad_request', 'This region still has runners.')
      if (await hasLiveSandboxesIn(transaction, id))
        throw new Problem('bad_request', 'There are still sandboxes in this region.')
      if (await hasVolumesIn(transaction, id))
        throw new Problem('bad_request', 'There are still volumes in this region.')
      await forgetSandboxesIn(transaction, id)
      await forgetVolumesIn(transaction, id)
      await deleteRegion(transaction, id)
      await announceCredentialChange(transaction)
    })
  } finally {
    callers.forget()
  }
}
