// The certificate authority of this server. With its certificates, hosts and control prove to each other who they are.
// All control processes share the authority. Its private key is encrypted in the database and never leaves control.
import { createHash, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { Parts } from '#src/control/parts.ts'
import { UnreadableSecret } from '#src/control/storage/encryption.ts'
import { certify, makeAuthority, makeServerCertificate, spanOf } from '#src/kit/certificate.ts'
import { controlHostName, type HostProgram, hostNameOf } from '#src/wire/hosts.ts'
import { findAuthority, insertAuthority } from './store.ts'

const name = 'Alcove hosts'
const purpose = 'host-authority'
const authorityDays = 3650
/** Days for which certificates of hosts and of control are valid. */
const certificateDays = 30

export class HostAuthority {
  /** The authority's own certificate, as PEM. */
  readonly certificate: string
  /**
   * SHA-256 of this authority's certificate, as base64url. The token of a runner ends with this hash.
   * With the hash, a machine that joins checks that it is connected to this server.
   */
  readonly hash: string
  readonly #privateKey: string

  private constructor(certificate: string, privateKey: string) {
    this.certificate = certificate
    this.hash = createHash('sha256').update(new X509Certificate(certificate).raw).digest('base64url')
    this.#privateKey = privateKey
  }

  /**
   * Reads this server's certificate authority from the database, or creates it. All control processes get the same authority, even
   * if they start together.
   */
  static async open({
    database,
    encryption,
    clock,
  }: Pick<Parts, 'database' | 'encryption' | 'clock'>): Promise<HostAuthority> {
    const { sql } = database
    if ((await findAuthority(sql)) === undefined) {
      const { certificate, privateKey } = makeAuthority(name, spanOf(authorityDays))
      await insertAuthority(sql, { certificate, sealedKey: encryption.encrypt(purpose, privateKey) }, clock.now())
    }
    const { certificate, sealedKey } = (await findAuthority(sql))!
    try {
      return new HostAuthority(certificate, encryption.decrypt(purpose, sealedKey))
    } catch (error) {
      if (!(error instanceof UnreadableSecret)) throw error
      throw new Error(
        'the key of the authority for hosts was encrypted under another key: add that key to ALCOVE_OLDER_ENCRYPTION_KEYS',
        { cause: error },
      )
    }
  }

  /** Returns a certificate, as PEM, for the public key of the runner or the gate of a host. */
  certifyHost(program: HostProgram, runnerId: string, publicKey: KeyObject, days = certificateDays): string {
    // Gates of other hosts connect to this gate. The certificate of a gate must therefore be valid for a TLS server
    // too.
    const purposes = program === 'gate' ? (['client', 'server'] as const) : (['client'] as const)
    const holder = { publicKey, hosts: [hostNameOf(program, runnerId)], purposes }
    return certify({ name, privateKey: this.#privateKey }, holder, spanOf(days))
  }

  /** Returns a new key and certificate for control's port for hosts, as options of a TLS server. */
  makeOwn(): { ca: string; cert: string; key: string } {
    const issuer = { name, privateKey: this.#privateKey }
    const { certificate, privateKey } = makeServerCertificate(issuer, [controlHostName], spanOf(certificateDays))
    // The authority's certificate is included, because a machine that joins compares the hash of this certificate with the
    // hash in its token.
    return { ca: this.certificate, cert: certificate + this.certificate, key: privateKey }
  }
}

/** SHA-256 of a public key (SubjectPublicKeyInfo), in lower-case hex. */
export const keyHashOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')

/** Length in bytes of an uncompressed P-256 public key in DER form (SubjectPublicKeyInfo). */
const keyBytes = 91

/** Parses a public key of EC P-256 from PEM. Undefined if the text is anything else. */
export const readPublicKey = (pem: string): KeyObject | undefined => {
  if (!/^-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/=\n]+\n-----END PUBLIC KEY-----\n?$/.test(pem)) return undefined
  try {
    const key = createPublicKey({ key: pem, format: 'pem' })
    const isP256 = key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
    return isP256 && key.export({ type: 'spki', format: 'der' }).length === keyBytes ? key : undefined
  } catch {
    return undefined
  }
}
