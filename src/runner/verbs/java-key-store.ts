// Writes a Java key store with trusted certificates, as JKS: every Java can read it, and it needs no secret.
import { createHash } from 'node:crypto'

const magic = 0xfeedfeed
const version = 2
const trustedCertificate = 2
/**
 * Java's usual password, from which the key store's checksum is made. Java verifies the checksum only if a program gives the
 * password.
 */
const password = 'changeit'

const number = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

const text = (value: string) => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Returns the certificates of a PEM text, in DER format. Other text between the certificates is ignored. */
export const certificatesIn = (pem: string): Buffer[] =>
  [...pem.matchAll(/-----BEGIN (?:TRUSTED )?CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END/g)].map(([, body = '']) =>
    Buffer.from(body, 'base64'),
  )

export const javaKeyStore = (certificates: readonly Buffer[]): Buffer => {
  const time = Buffer.alloc(8)
  const entries = certificates.map((certificate, at) =>
    Buffer.concat([
      ...[number(trustedCertificate), text(`authority-${at}`), time],
      ...[text('X.509'), number(certificate.length), certificate],
    ]),
  )
  const contents = Buffer.concat([number(magic), number(version), number(entries.length), ...entries])
  const salt = Buffer.from(password, 'utf16le').swap16()
  const sum = createHash('sha1').update(salt).update('Mighty Aphrodite').update(contents).digest()
  return Buffer.concat([contents, sum])
}
