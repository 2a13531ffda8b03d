import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { certificatesIn, javaKeyStore } from './java-key-store.ts'

suite('a key store of Java', () => {
  test('each certificate of a PEM text becomes an entry of a key store, with the fields and checksum of Java', () => {
    const pem = `# a comment\n${rootCertificates.slice(0, 3).join('\n')}\nrest`
    const store = javaKeyStore(certificatesIn(pem))
    assert.equal(store.readUInt32BE(0), 0xfeedfeed)
    assert.deepEqual([store.readUInt32BE(4), store.readUInt32BE(8)], [2, 3])
    const utf16 = Buffer.from('changeit', 'utf16le').swap16()
    const sum = createHash('sha1').update(utf16).update('Mighty Aphrodite').update(store.subarray(0, -20)).digest()
    assert.deepEqual(store.subarray(-20), sum)
    let at = 12
    const take = (size: number) => {
      at += size
      return store.subarray(at - size, at)
    }
    const takeText = () => take(take(2).readUInt16BE()).toString()
    for (const [index, der] of certificatesIn(pem).entries()) {
      assert.deepEqual([take(4).readUInt32BE(), takeText()], [2, `authority-${index}`])
      // The time of the entry's creation.
      take(8)
      assert.equal(takeText(), 'X.509')
      assert.deepEqual(take(take(4).readUInt32BE()), der)
    }
    assert.equal(store.length - at, sum.length)
  })

  test('a key store that is made from a text without certificates is empty', () => {
    assert.equal(javaKeyStore(certificatesIn('-----BEGIN CERTIFICATE-----\n*\n-----END')).readUInt32BE(8), 0)
  })
})
