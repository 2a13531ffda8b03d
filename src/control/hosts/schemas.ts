// The schemas of the calls by which a machine joins and renews its certificates.
import Type, { type Static } from 'typebox'

/** A P-256 public key has 178 characters as PEM, so 1024 are enough. */
const PublicKey = Type.String({ maxLength: 1024, description: 'PEM of a SubjectPublicKeyInfo, EC P-256.' })

const Keys = Type.Object({ runner: PublicKey, gate: PublicKey })

const Version = Type.String({ maxLength: 64, description: 'The version of Alcove on the host.' })

export const Join = Type.Object({
  token: Type.String({ minLength: 1, maxLength: 256, description: 'What `POST /runners` has answered.' }),
  version: Version,
  keys: Keys,
})
export type Join = Static<typeof Join>

export const Renew = Type.Object({ version: Version, keys: Keys })
export type Renew = Static<typeof Renew>

export const Certificates = Type.Object({
  runnerId: Type.String(),
  regionId: Type.String(),
  authority: Type.String({ description: 'PEM, like each certificate.' }),
  certificates: Type.Object({ runner: Type.String(), gate: Type.String() }),
  renewAfterSeconds: Type.Integer(),
})
