// A certificate authority for tests, made with the command `openssl`.
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes an EC P-256 key pair as PEM. */
export const newKeyPair = () =>
  generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

export class TestAuthority implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'alcove-authority-'))
  /** The authority's own certificate as PEM. */
  readonly certificate: string
  #files = 0

  constructor(name = 'Alcove hosts') {
    this.#write('ca.key', newKeyPair().privateKey)
    this.#openssl('req', '-x509', '-new', '-key', 'ca.key', '-subj', `/CN=${name}`, '-days', '30', '-out', 'ca.pem')
    this.certificate = readFileSync(join(this.#directory, 'ca.pem'), 'utf8')
  }

  /** Returns a certificate for a public key, with one DNS name. */
  certify(publicKey: string, host: string, days = 30): string {
    this.#files += 1
    const file = (end: string) => `${this.#files}.${end}`
    this.#write(file('pub'), publicKey)
    this.#write(file('key'), newKeyPair().privateKey)
    this.#write(file('ext'), `subjectAltName=DNS:${host}\n`)
    this.#openssl('req', '-new', '-key', file('key'), '-subj', '/CN=host', '-out', file('csr'))
    const signing = ['x509', '-req', '-in', file('csr'), '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial']
    const content = ['-force_pubkey', file('pub'), '-extfile', file('ext'), '-days', String(days)]
    this.#openssl(...signing, ...content, '-out', file('pem'))
    return readFileSync(join(this.#directory, file('pem')), 'utf8')
  }

  /** Returns TLS options of a server or client with this name. */
  newCertificate(host: string, days?: number): { ca: string; cert: string; key: string } {
    const { publicKey, privateKey } = newKeyPair()
    return { ca: this.certificate, cert: this.certify(publicKey, host, days), key: privateKey }
  }

  /** Writes the files of a program's certificate, as a program that renews it does. `age`: makes their times differ. */
  writeCertificate(directory: string, host: string, age = 0): void {
    const { ca, cert, key } = this.newCertificate(host)
    mkdirSync(directory, { recursive: true })
    const files = { 'authority.pem': ca, 'certificate.pem': cert, 'key.pem': key }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
    const time = Date.now() / 1000 - age
    utimesSync(join(directory, 'certificate.pem'), time, time)
  }

  #write(name: string, text: string) {
    writeFileSync(join(this.#directory, name), text)
  }

  #openssl(...args: string[]) {
    execFileSync('openssl', args, { cwd: this.#directory, stdio: ['ignore', 'ignore', 'pipe'] })
  }

  [Symbol.dispose]() {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
