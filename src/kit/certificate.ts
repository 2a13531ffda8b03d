// Makes X.509 certificates with EC P-256 keys: one for a certificate authority, and others for programs. This file needs no
// library, because it writes only these two fixed forms (RFC 5280) and parses no certificate.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto'

export type Certified = { certificate: string; privateKey: string }

/** The time span in which a certificate is valid. */
export type Span = { notBefore: Date; notAfter: Date }

const dayMs = 86_400_000

/**
 * Returns the time span of a certificate that is made now. The span is by the kernel's clock even if a test simulates another
 * time, because clients check certificates by the kernel's clock. The span begins a day before now, because a client's clock may
 * be slow.
 */
export const spanOf = (days: number): Span => ({
  notBefore: new Date(Date.now() - dayMs),
  notAfter: new Date(Date.now() + days * dayMs),
})

const bytesOf = (value: number): number[] => (value < 256 ? [value] : [...bytesOf(value >>> 8), value & 255])

const node = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const contents = Buffer.concat(parts)
  const { length } = contents
  const size = length < 128 ? [length] : [0x80 | bytesOf(length).length, ...bytesOf(length)]
  return Buffer.concat([Buffer.from([tag, ...size]), contents])
}

const sequence = (...parts: Uint8Array[]) => node(0x30, ...parts)
const octets = (contents: Uint8Array) => node(0x04, contents)
const isTrue = Buffer.from([0x01, 0x01, 0xff])
const objectId = (dotted: string): Buffer => {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const sevenBits = (value: number): number[] =>
    value < 128 ? [value] : [...sevenBits(value >>> 7).map((each) => each | 0x80), value & 127]
  return node(0x06, Buffer.from([40 * first + second, ...rest.flatMap(sevenBits)]))
}

const ecdsaWithSha256 = sequence(objectId('1.2.840.10045.4.3.2'))

const nameOf = (commonName: string) =>
  sequence(node(0x31, sequence(objectId('2.5.4.3'), node(0x0c, Buffer.from(commonName)))))

/**
 * Returns a time as GeneralizedTime without fractions or, before 2050, as UTCTime with two digits for the year (RFC
 * 5280).
 */
const timeOf = (date: Date) => {
  const digits = `${date.toISOString().replaceAll(/\.\d+|[-:T]/g, '')}`
  return date.getUTCFullYear() < 2050 ? node(0x17, Buffer.from(digits.slice(2))) : node(0x18, Buffer.from(digits))
}

const extension = (id: string, isCritical: boolean, value: Uint8Array) =>
  sequence(objectId(id), ...(isCritical ? [isTrue] : []), octets(value))

const publicPart = (key: KeyObject): Buffer =>
  (key.type === 'public' ? key : createPublicKey(key as never)).export({ type: 'spki', format: 'der' })

/**
 * Returns the value by which a certificate names a key (RFC 5280 §4.2.1.2). Any value that is unique for the key is
 * allowed.
 */
const keyId = (key: KeyObject) => createHash('sha256').update(publicPart(key)).digest().subarray(0, 20)

const newKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

const write = (
  subject: { name: string; key: KeyObject },
  issuer: { name: string; key: KeyObject },
  { notBefore, notAfter }: Span,
  extensions: readonly Buffer[],
): string => {
  // The first bit is 0, because the number must be positive. The second bit is 1, so that the number's length is always the same.
  const serial = randomBytes(16)
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
  const toSign = sequence(
    node(0xa0, node(0x02, Buffer.from([2]))),
    node(0x02, serial),
    ecdsaWithSha256,
    nameOf(issuer.name),
    sequence(timeOf(notBefore), timeOf(notAfter)),
    nameOf(subject.name),
    publicPart(subject.key),
    node(
      0xa3,
      sequence(
        ...extensions,
        extension('2.5.29.14', false, octets(keyId(subject.key))),
        extension('2.5.29.35', false, sequence(node(0x80, keyId(issuer.key)))),
      ),
    ),
  )
  const signature = node(0x03, Buffer.from([0]), sign('sha256', toSign, issuer.key))
  const text = sequence(toSign, ecdsaWithSha256, signature)
    .toString('base64')
    .replaceAll(/.{1,64}/g, '$&\n')
  return `-----BEGIN CERTIFICATE-----\n${text}-----END CERTIFICATE-----\n`
}

const asPem = (privateKey: KeyObject) => privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

/**
 * Returns the extension that says what a key may be used for, with one bit per use, from the left (RFC 5280 §4.2.1.3).
 * `unused`: number of bits at the end that mean nothing.
 */
const usage = (bits: number, unused: number) => extension('2.5.29.15', true, node(0x03, Buffer.from([unused, bits])))
const digitalSignature = usage(0x80, 7)
const signsCertificates = usage(0x06, 1)

/** Makes an authority, which may sign certificates of programs, but not of other authorities. */
export const makeAuthority = (name: string, span: Span): Certified => {
  const subject = { name, key: newKey() }
  const isAuthority = extension('2.5.29.19', true, sequence(isTrue, node(0x02, Buffer.from([0]))))
  return {
    certificate: write(subject, subject, span, [isAuthority, signsCertificates]),
    privateKey: asPem(subject.key),
  }
}

/** What an authority needs to sign certificates. `privateKey`: PEM. */
type Issuer = { name: string; privateKey: string }

/** Extended key usages: whether a TLS server or a TLS client may use the certificate. */
const purposes = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' } as const

export type Purpose = keyof typeof purposes

type Holder = {
  publicKey: KeyObject
  /** The DNS names that the certificate is for. */
  hosts: readonly string[]
  purposes: readonly Purpose[]
}

/** Returns a certificate for the holder of a key, signed by `authority`. */
export const certify = (authority: Issuer, holder: Holder, span: Span): string => {
  const issuer = { name: authority.name, key: createPrivateKey(authority.privateKey) }
  const names = holder.hosts.map((host) => node(0x82, Buffer.from(host, 'latin1')))
  return write({ name: 'Alcove', key: holder.publicKey }, issuer, span, [
    extension('2.5.29.19', true, sequence()),
    digitalSignature,
    extension('2.5.29.37', false, sequence(...holder.purposes.map((purpose) => objectId(purposes[purpose])))),
    extension('2.5.29.17', false, sequence(...names)),
  ])
}

/** Makes a key and a certificate for servers with the names in `hosts`, signed by `authority`. */
export const makeServerCertificate = (authority: Issuer, hosts: readonly string[], span: Span): Certified => {
  const key = newKey()
  const holder = { publicKey: createPublicKey(key as never), hosts, purposes: ['server'] } as const
  return { certificate: certify(authority, holder, span), privateKey: asPem(key) }
}
