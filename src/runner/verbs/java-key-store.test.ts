import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { certificatesIn, javaKeyStore } from './java-key-store.ts'

suite('a key store of Java', () => {
  test('each certificate of a PEM text becomes an entry of a key store, with the checksum that Java computes', () => {
    const pem = `# a comment\n${rootCertificates.slice(0, 3).join('\n')}\nrest`
    const store = javaKeyStore(certificatesIn(pem))
    assert.equal(store.readUInt32BE(0), 0xfeedfeed)
    assert.deepEqual([store.readUInt32BE(4), store.readUInt32BE(8)], [2, 3])
    const utf16 = Buffer.from('changeit', 'utf16le').swap16()
    const sum = createHash('sha1').update(utf16).update('Mighty Aphrodite').update(store.subarray(0, -20)).digest()
    assert.deepEqual(store.subarray(-20), sum)
    for (const der of certificatesIn(pem)) assert.ok(store.includes(der))
  })

  test('a key store that is made from a text without certificates is empty', () => {
    assert.equal(javaKeyStore(certificatesIn('-----BEGIN CERTIFICATE-----\n*\n-----END')).readUInt32BE(8), 0)
  })
})
