// A certificate authority for tests.
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { certify, makeAuthority, spanOf } from '../certificate.ts'

/** Makes an EC P-256 key pair as PEM. */
export const newKeyPair = () =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

const name = 'Alcove hosts'

export class TestAuthority {
  readonly #own = makeAuthority(name, spanOf(30))

  /** The authority's own certificate as PEM. */
  get certificate(): string {
    return this.#own.certificate
  }

  /** Returns a certificate for a public key, with one DNS name. */
  certify(publicKey: string, host: string, days = 30): string {
    const holder = { publicKey: createPublicKey(publicKey), hosts: [host], purposes: ['client', 'server'] } as const
    return certify({ name, privateKey: this.#own.privateKey }, holder, spanOf(days))
  }

  /**
   * Returns TLS options for a server or client with this name. `cert` also contains the certificate of the authority.
   */
  newCertificate(host: string, days?: number): { ca: string; cert: string; key: string } {
    const { publicKey, privateKey } = newKeyPair()
    return { ca: this.certificate, cert: this.certify(publicKey, host, days) + this.certificate, key: privateKey }
  }

  /** Writes the certificate files of a program. `age`: the time stamp of certificate.pem is this many seconds ago. */
  writeCertificate(directory: string, host: string, age = 0, days?: number): void {
    const { ca, cert, key } = this.newCertificate(host, days)
    mkdirSync(directory, { recursive: true })
    const files = { 'authority.pem': ca, 'certificate.pem': cert, 'key.pem': key }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
    const time = Date.now() / 1000 - age
    utimesSync(join(directory, 'certificate.pem'), time, time)
  }
}
