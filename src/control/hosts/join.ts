// Gives a machine the certificates of its runner and its gate.
// The machine first shows control the runner's token, and later its certificate.
import { type KeyObject, randomBytes } from 'node:crypto'
import { hashKey } from '#src/control/auth/secret.ts'
import { localRunnerId } from '#src/control/bootstrap.ts'
import type { Parts } from '#src/control/parts.ts'
import { findRunnerByKey, lockRunner, type RunnerIdentity, replaceKey } from '#src/control/runners/service.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { type GateOfHost, type HostCertificates, type HostProgram, hostPrograms } from '#src/wire/hosts.ts'
import { type HostAuthority, keyHashOf, readPublicKey } from './authority.ts'
import type { Join, Renew } from './schemas.ts'
import {
  announceHostChange,
  deleteHost,
  endToken,
  findHost,
  findTraded,
  type HostKeys,
  hasKeyOfOthers,
  keepPublicUrl,
  writeHost,
} from './store.ts'
import { checkVersion } from './version-rule.ts'

export type JoinParts = Pick<Parts, 'database' | 'clock' | 'log' | 'settings'> & { authority: HostAuthority }

/**
 * Seconds after which hosts renew their certificates, which are valid for 30 days.
 * A host can therefore connect again after four weeks without control.
 */
const renewAfterSeconds = 24 * 60 * 60

/**
 * Makes a token for a runner. If machines may join over the network, the token ends with the hash of the authority's
 * certificate.
 */
export const newToken = (authority: Pick<HostAuthority, 'hash'> | undefined): string =>
  `alr_${randomBytes(32).toString('hex')}${authority === undefined ? '' : `.${authority.hash}`}`

type PublicKeys = Record<HostProgram, KeyObject>

const readKeys = (given: Record<HostProgram, string>): { keys: PublicKeys; hashes: HostKeys } => {
  const [runner, gate] = hostPrograms.map((program) => {
    const key = readPublicKey(given[program])
    if (key === undefined) throw new Problem('bad_request', `keys.${program} must be an EC P-256 public key in PEM.`)
    return key
  }) as [KeyObject, KeyObject]
  const hashes = { runner: keyHashOf(runner), gate: keyHashOf(gate) }
  if (hashes.runner === hashes.gate) throw new Problem('bad_request', 'Runner and gate need different keys.')
  return { keys: { runner, gate }, hashes }
}

const isSame = (one: HostKeys, other: HostKeys) => hostPrograms.every((program) => one[program] === other[program])

const checkNotOfOthers = async (transaction: Transaction, runnerId: string, hashes: HostKeys) => {
  if (!(await hasKeyOfOthers(transaction, runnerId, hashes))) return
  throw new Problem('bad_request', 'Another host has one of these keys. Make new keys for this one.')
}

const certificatesFor = (
  authority: HostAuthority,
  { id: runnerId, regionId }: RunnerIdentity,
  keys: PublicKeys,
): HostCertificates => ({
  ...{ runnerId, regionId, authority: authority.certificate },
  certificates: {
    runner: authority.certifyHost('runner', runnerId, keys.runner),
    gate: authority.certifyHost('gate', runnerId, keys.gate),
  },
  renewAfterSeconds,
})

/**
 * Makes certificates for a machine that has the token of a runner.
 * If the reply is lost, the machine may call again with the same keys, until it has used a certificate.
 */
export const trade = async (parts: JoinParts, { token, version, keys: given }: Join): Promise<HostCertificates> => {
  const { database, clock, log, settings, authority } = parts
  checkVersion(version, settings.version)
  const { keys, hashes } = readKeys(given)
  const tokenHash = hashKey(token)
  const runner = await database.transaction(async (transaction) => {
    const find = async () =>
      (await findRunnerByKey(transaction, tokenHash))?.id ?? (await findTraded(transaction, tokenHash))
    const id = await find()
    // The server's own runner has a key from the settings. That key is no token, so nobody can get certificates with it
    // here.
    if (id === undefined || id === localRunnerId || !(await lockRunner(transaction, id))) {
      throw new Problem('unauthorized')
    }
    const host = await findHost(transaction, id)
    if (host?.tokenHash === tokenHash) {
      if (isSame(host.keys, hashes)) return { id, regionId: host.regionId }
      throw new Problem('forbidden', 'Another machine has already used this token.')
    }
    // Control looks up the token again, now under the lock. Since the first look-up, another machine may have used the token,
    // or an operator may have replaced the token.
    const identity = await findRunnerByKey(transaction, tokenHash)
    if (identity === undefined) throw new Problem('unauthorized')
    await checkNotOfOthers(transaction, id, hashes)
    await writeHost(transaction, { runnerId: id, keys: hashes, tokenHash }, clock.now())
    await replaceKey(transaction, id, `traded: ${id}`, clock.now())
    await announceHostChange(transaction, id)
    return identity
  })
  log.info({ runnerId: runner.id }, 'a host has traded its token for certificates')
  return certificatesFor(authority, runner, keys)
}

/**
 * Renews the certificates of a host. A caller with a certificate must send the public keys that control has stored. A caller
 * without a certificate must be the runner on the server's machine, and may send new keys.
 */
export const renew = async (
  { database, clock, settings, authority }: JoinParts,
  { runner, isCertified }: { runner: RunnerIdentity; isCertified: boolean },
  { version, keys: given }: Renew,
): Promise<HostCertificates> => {
  if (!isCertified && runner.id !== localRunnerId)
    throw new Problem(
      'forbidden',
      'This call needs a certificate. A host gets its certificates with its token, on the port for hosts.',
    )
  checkVersion(version, settings.version)
  const { keys, hashes } = readKeys(given)
  await database.transaction(async (transaction) => {
    if (!(await lockRunner(transaction, runner.id))) throw new Problem('unauthorized')
    const host = await findHost(transaction, runner.id)
    if (host !== undefined && isSame(host.keys, hashes)) return
    if (isCertified)
      throw new Problem('forbidden', 'This host has other keys. Join again with a new token to change them.')
    await checkNotOfOthers(transaction, runner.id, hashes)
    await writeHost(transaction, { runnerId: runner.id, keys: hashes, tokenHash: null }, clock.now())
    await announceHostChange(transaction, runner.id)
  })
  return certificatesFor(authority, runner, keys)
}

/**
 * Makes a new token for a runner, and the former token becomes invalid. The certificates of the runner's host stay valid until
 * they expire, or until a machine joins with the new token.
 */
export const replaceToken = async (
  { database, clock }: Pick<Parts, 'database' | 'clock'>,
  authority: HostAuthority | undefined,
  id: string,
) => {
  if (id === localRunnerId) {
    throw new Problem('conflict', `Runner "${id}" is the server's own. Its key comes from the settings of the server.`)
  }
  const apiKey = newToken(authority)
  const regionId = await database.transaction(async (transaction) => {
    if (!(await lockRunner(transaction, id))) throw new Problem('not_found', 'There is no such runner.')
    await endToken(transaction, id)
    return await replaceKey(transaction, id, hashKey(apiKey), clock.now())
  })
  return { id, regionId, apiKey }
}

/** Makes the certificates of a runner invalid. Called when the runner is removed. */
export const endCertificates = async (transaction: Transaction, runnerId: string): Promise<void> => {
  await deleteHost(transaction, runnerId)
  await announceHostChange(transaction, runnerId)
}

/**
 * Returns the gate that a host reports. Leaves out the gate's public URL if the host reported another URL at first.
 * Clients send their API keys to this URL, so an attacker who controls the host must not change it.
 */
export const withKeptUrl = async (
  { database, log }: Pick<Parts, 'database' | 'log'>,
  runnerId: string,
  { publicUrl, ...gate }: Omit<GateOfHost, 'id'>,
): Promise<GateOfHost> => {
  const kept = await keepPublicUrl(database.sql, runnerId, publicUrl)
  if (publicUrl === undefined) return { id: runnerId, ...gate }
  if (publicUrl === kept) return { id: runnerId, ...gate, publicUrl }
  log.warn(
    { runnerId, publicUrl, kept },
    'a host reports a new public URL; it is used only after the host has joined with a new token',
  )
  return { id: runnerId, ...gate }
}
