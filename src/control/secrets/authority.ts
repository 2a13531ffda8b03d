// The certificate authority of an organization. It signs certificates for the hosts of the organization's secrets. Runners get
// these certificates, but never the authority's private key.
import { type Certified, makeAuthority, makeServerCertificate, spanOf } from '#src/kit/certificate.ts'
import { Problem } from '#src/problems.ts'
import type { Parts } from '../parts.ts'
import type { Sql } from '../storage/database.ts'
import { type Authority, findAuthorities, insertAuthority, type Secret } from './store.ts'

const dayMs = 86_400_000
const authorityDays = 3650
/**
 * Validity of a certificate that a runner shows to sandboxes in place of the certificate of a secret's host. Control renews the
 * runner's certificate after half of this time.
 */
const certificateDays = 14
/** Maximum number of certificates that control keeps in memory. Control makes a missing certificate in about a millisecond. */
const mostKept = 5000

const purposeOf = (organizationId: string) => `secret-authority:${organizationId}`
const nameOf = (organizationId: string) => `Alcove secrets of ${organizationId}`

/** Makes a certificate authority for the organization if it has none. Returns the authority's certificate. */
export const ensureAuthority = async (
  { encryption, clock }: Pick<Parts, 'encryption' | 'clock'>,
  sql: Sql,
  organizationId: string,
): Promise<string> => {
  const find = async () => (await findAuthorities(sql, [organizationId]))[0]?.certificate
  const known = await find()
  if (known !== undefined) return known
  const { certificate, privateKey } = makeAuthority(nameOf(organizationId), spanOf(authorityDays))
  const sealedKey = encryption.encrypt(purposeOf(organizationId), privateKey)
  await insertAuthority(sql, { organizationId, certificate, sealedKey }, clock.now())
  const stored = await find()
  if (stored === undefined) throw new Problem('conflict', 'The organization was deleted meanwhile.')
  return stored
}

const kept = new Map<string, Certified & { until: number }>()

/**
 * Returns a certificate for the hosts of a secret. Reuses the last certificate while at least half of its validity is
 * left.
 */
export const certify = (
  { encryption }: Pick<Parts, 'encryption'>,
  { organizationId, certificate, sealedKey }: Authority,
  { id, version, hosts }: Secret,
): Certified => {
  const key = `${certificate} ${id} ${version}`
  const known = kept.get(key)
  if (known !== undefined && known.until > Date.now()) return known
  const privateKey = encryption.decrypt(purposeOf(organizationId), sealedKey)
  const made = makeServerCertificate({ name: nameOf(organizationId), privateKey }, hosts, spanOf(certificateDays))
  if (kept.size >= mostKept) kept.clear()
  kept.set(key, { ...made, until: Date.now() + (certificateDays / 2) * dayMs })
  return made
}
