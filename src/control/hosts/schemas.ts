// The schemas of the calls by which a machine joins and renews its certificates.
import Type, { type Static } from 'typebox'

/** A P-256 public key has 178 characters as PEM, so 1024 are enough. */
const PublicKey = Type.String({
  maxLength: 1024,
  description: 'The public key in PEM format: a SubjectPublicKeyInfo for EC P-256.',
})

const Keys = Type.Object({ runner: PublicKey, gate: PublicKey })

const Version = Type.String({ maxLength: 64, description: 'The version of Alcove on the host.' })

export const Join = Type.Object({
  token: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'The `apiKey` from the answer that created or replaced the token of the runner.',
  }),
  version: Version,
  keys: Keys,
})
export type Join = Static<typeof Join>

export const Renew = Type.Object({ version: Version, keys: Keys })
export type Renew = Static<typeof Renew>

export const Certificates = Type.Object({
  runnerId: Type.String(),
  regionId: Type.String(),
  authority: Type.String({
    description: 'The certificate of the server’s certificate authority. All certificates are in PEM format.',
  }),
  certificates: Type.Object({ runner: Type.String(), gate: Type.String() }),
  renewAfterSeconds: Type.Integer(),
})
