// The image registries of an organization. Control tests an account, then saves it with an encrypted password in the database.
// The account is used only for images of its organization.
import { randomUUID } from 'node:crypto'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import { everyNetwork, noNetworks } from '#src/kit/networks.ts'
import { accountFor, readRegistryAddress } from '#src/kit/registry-address.ts'
import { Problem } from '#src/problems.ts'
import type { ImageAssignment, ImageSource, RegistryLogin } from '#src/wire/runner-link.ts'
import type { Actor } from '../auth/actor.ts'
import { readDisplayText } from '../display-text.ts'
import { createOutbound, type Outbound, outboundOf } from '../outbound/outbound.ts'
import type { Parts } from '../parts.ts'
import { checkNotSuspended } from '../people/organization.ts'
import { isDuplicate } from '../storage/database.ts'
import { UnreadableSecret } from '../storage/encryption.ts'
import { checkAccount } from './check-account.ts'
import type { CreateRegistry, UpdateRegistry } from './schemas.ts'
import {
  deleteRegistry,
  findRegistry,
  insertRegistry,
  listRegistries,
  listRegistriesOf,
  type Registry,
  writeRegistry,
} from './store.ts'

/** Maximum number of image registries that one organization may save. */
export const mostRegistries = 50

/**
 * HTTP clients for image registries. `own`: for registries that the operator has named, at any address. `open`: for all other
 * registries, only at public addresses.
 */
export type RegistryParts = Parts & { registryOutbound: { own: Outbound; open: Outbound } }

/**
 * Returns a function that returns a TLS context. The context trusts the host's certificate authorities, for example a company's.
 * The first call reads these authorities, because reading them takes long.
 */
const trustLikeTheHost = (): (() => SecureContext) => {
  let made: SecureContext | undefined
  return () => {
    made ??= createSecureContext({
      ca: [...new Set([...getCACertificates('default'), ...getCACertificates('system')])],
    })
    return made
  }
}

/** Adds the two HTTP clients for image registries. Runners allow the same addresses as these clients (runner/images/skopeo.ts). */
export const withRegistryOutbound = <P extends Parts>(parts: P): P & RegistryParts => {
  const secureContext = trustLikeTheHost()
  return {
    ...parts,
    registryOutbound: {
      own: createOutbound({ allowed: everyNetwork, secureContext }),
      open: createOutbound({ allowed: noNetworks, secureContext }),
    },
  }
}

const purposeOf = ({ id }: { id: string }) => `docker-registry:${id}`

const asView = ({ id, name, url, username, project, createdAt, updatedAt }: Registry) => ({
  ...{ id, name, url, username, project },
  registryType: 'organization' as const,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
})

const readHost = (given: string, { settings }: Pick<Parts, 'settings'>): string => {
  const address = readRegistryAddress(given)
  if (typeof address === 'string') throw new Problem('bad_request', `url ${address}`)
  const { host, isPlain } = address
  const { plain, private: own, allowed } = settings.registries
  if (isPlain && !plain.includes(host))
    throw new Problem(
      'bad_request',
      `url must begin with https://, because ${host} would get the password unencrypted. The operator of this server can allow that (ALCOVE_PLAIN_REGISTRIES).`,
    )
  if (allowed !== undefined && ![...allowed, ...plain, ...own].includes(host))
    throw new Problem('bad_request', `Images from the registry ${host} are not allowed here.`)
  return host
}

const readUsername = (given: string): string => {
  // A colon would end the username in HTTP Basic authentication (RFC 7617 §2).
  if (/[\p{Cc}\p{Cs}:]/u.test(given))
    throw new Problem('bad_request', 'username must contain no colon and no control characters')
  return given
}

const readProject = (given: string): string => {
  const project = given.trim().replaceAll(/^\/+|\/+$/g, '')
  if (/[\p{Cc}\p{Cs}\s]/u.test(project))
    throw new Problem('bad_request', 'project must be the beginning of a repository’s name, such as team/tools')
  return project
}

const check = async (
  { settings, registryOutbound }: RegistryParts,
  { organizationId, host, username }: Registry,
  password: string,
): Promise<void> => {
  const { plain, private: own } = settings.registries
  const isPlain = plain.includes(host)
  const outbound = isPlain || own.includes(host) ? registryOutbound.own : registryOutbound.open
  await checkAccount({ outbound: outboundOf(outbound, organizationId), isPlain }, { host, username, password })
}

const orTaken = async <T>(work: Promise<T>): Promise<T> => {
  try {
    return await work
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('conflict', 'The organization already has an account at this registry with the same project.', {
      cause: error,
    })
  }
}

export const createRegistry = async (parts: RegistryParts, actor: Actor, body: CreateRegistry) => {
  checkNotSuspended(parts, actor)
  const { database, clock, encryption } = parts
  const now = clock.now()
  const id = randomUUID()
  const registry: Registry = {
    id,
    organizationId: actor.organization.id,
    name: readDisplayText('name', body.name),
    url: body.url.trim(),
    host: readHost(body.url, parts),
    username: readUsername(body.username),
    sealedPassword: encryption.encrypt(purposeOf({ id }), body.password),
    project: readProject(body.project ?? ''),
    createdAt: now,
    updatedAt: now,
  }
  await check(parts, registry, body.password)
  const isInserted = await orTaken(
    database.transaction((transaction) => insertRegistry(transaction, registry, mostRegistries)),
  )
  if (!isInserted) throw new Problem('quota_exceeded', `An organization can have at most ${mostRegistries} registries.`)
  return asView(registry)
}

const getRegistry = async ({ database }: Pick<Parts, 'database'>, { organization }: Actor, id: string) => {
  const registry = await findRegistry(database.sql, organization.id, id)
  if (registry === undefined) throw new Problem('not_found', 'There is no such registry.')
  return registry
}

export const viewRegistries = async ({ database }: Pick<Parts, 'database'>, { organization }: Actor) =>
  (await listRegistries(database.sql, organization.id)).map(asView)

export const viewRegistry = async (parts: Pick<Parts, 'database'>, actor: Actor, id: string) =>
  asView(await getRegistry(parts, actor, id))

/** Decrypts the stored password of an image registry. */
const passwordOf = ({ encryption }: Pick<Parts, 'encryption'>, registry: Registry): string => {
  try {
    return encryption.decrypt(purposeOf(registry), registry.sealedPassword)
  } catch (error) {
    if (!(error instanceof UnreadableSecret)) throw error
    throw new Problem('conflict', 'The stored password can no longer be read. Send it again.', { cause: error })
  }
}

export const updateRegistry = async (parts: RegistryParts, actor: Actor, id: string, body: UpdateRegistry) => {
  checkNotSuspended(parts, actor)
  const { database, clock, encryption } = parts
  const before = await getRegistry(parts, actor, id)
  const { name, url, username, password, project } = body
  const host = url == null ? before.host : readHost(url, parts)
  // A caller who changes the host must send the password again: otherwise control would send the stored password to the
  // caller's server.
  if (host !== before.host && password == null)
    throw new Problem('bad_request', 'password is required if url changes to another registry')
  const after: Registry = {
    ...before,
    name: name == null ? before.name : readDisplayText('name', name),
    url: url == null ? before.url : url.trim(),
    host,
    username: username == null ? before.username : readUsername(username),
    sealedPassword: password == null ? before.sealedPassword : encryption.encrypt(purposeOf(before), password),
    project: project == null ? before.project : readProject(project),
    updatedAt: clock.now(),
  }
  const isOtherAccount = password != null || after.username !== before.username || host !== before.host
  if (isOtherAccount) await check(parts, after, password ?? passwordOf(parts, before))
  if (!(await orTaken(writeRegistry(database.sql, before, after))))
    throw new Problem('conflict', 'Another call has changed or deleted the registry meanwhile. Read it and try again.')
  return asView(after)
}

/** Deletes an image registry. Images that were pulled with its account stay; later pulls are made without the account. */
export const removeRegistry = async ({ database }: Parts, { organization }: Actor, id: string): Promise<void> => {
  if (!(await deleteRegistry(database.sql, organization.id, id)))
    throw new Problem('not_found', 'There is no such registry.')
}

/**
 * Splits the full reference of an image into registry and repository. For example, `docker.io/library/python:3.12` is
 * the repository `library/python` at the registry `docker.io`.
 */
const namedIn = (reference: string) => {
  const [registry = '', ...path] = reference.replace(/@.*$/, '').split('/')
  return { registry, repository: path.join('/').replace(/:[^/]*$/, '') }
}

/**
 * Returns the registry accounts that a runner may need to make an image. A build may need Docker Hub and all hosts that
 * the Dockerfile names.
 */
const accountsFor = (source: ImageSource, registries: readonly Registry[]): readonly Registry[] => {
  if (source.kind === 'registry') return [accountFor(namedIn(source.reference), registries) ?? []].flat()
  if (source.kind !== 'definition') return []
  const text = source.dockerfile.toLowerCase()
  return registries.filter(({ host }) => host === 'docker.io' || text.includes(host))
}

type LoginParts = Pick<Parts, 'database' | 'encryption' | 'log'>

/** Adds to each assignment of an image the registry accounts that the runner needs for the image. */
export const withLogins = async (
  { database, encryption, log }: LoginParts,
  assignments: readonly ImageAssignment[],
): Promise<ImageAssignment[]> => {
  const toBring = assignments.filter(({ target, source }) => target === 'present' && source !== undefined)
  const organizationIds = [...new Set(toBring.flatMap(({ organizationId }) => organizationId ?? []))]
  if (organizationIds.length === 0) return [...assignments]
  const registries = await listRegistriesOf(database.sql, organizationIds)
  const loginOf = (registry: Registry): RegistryLogin[] => {
    const { host, project, username } = registry
    try {
      return [{ host, project, username, password: encryption.decrypt(purposeOf(registry), registry.sealedPassword) }]
    } catch (error) {
      log.error({ err: error, registryId: registry.id }, 'the password of a registry cannot be read')
      return []
    }
  }
  return assignments.map((assignment) => {
    const { target, source, organizationId } = assignment
    if (target !== 'present' || source === undefined || organizationId === undefined) return assignment
    const own = registries.filter((registry) => registry.organizationId === organizationId)
    const logins = accountsFor(source, own).flatMap(loginOf)
    return logins.length === 0 ? assignment : { ...assignment, logins }
  })
}
