import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { createEncryption, newEncryptionKey, readEncryptionKey, UnreadableSecret } from './encryption.ts'

const [one, two] = [randomBytes(32), randomBytes(32)]
const { encrypt, decrypt } = createEncryption([one])

suite('encrypting secrets', () => {
  test('decrypting an encrypted text returns the text, whatever it contains', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (purpose, text) => {
        assert.equal(decrypt(purpose, encrypt(purpose, text)), text)
      }),
      { numRuns: 100 },
    )
  })

  test('encrypting a text twice gives different encrypted texts, and neither contains the text', () => {
    const [first, second] = [encrypt('a', 'open sesame'), encrypt('a', 'open sesame')]
    assert.notEqual(first, second)
    assert.match(first, /^v1\.[0-9a-f]{8}\.[\w-]+$/)
    assert.ok(!Buffer.from(first.split('.')[2]!, 'base64url').includes('sesame'))
  })

  test('a secret that was copied to another row, changed or cut cannot be decrypted', () => {
    const secret = encrypt('otel-config:ours', 'text')
    assert.throws(() => decrypt('otel-config:theirs', secret), UnreadableSecret)
    for (let at = 0; at < secret.length; at++) {
      const changed = `${secret.slice(0, at)}${secret[at] === 'A' ? 'B' : 'A'}${secret.slice(at + 1)}`
      // Skips the last base64url character: some of its bits are unused, so a changed character can stand for the same
      // bytes.
      if (at === secret.length - 1) continue
      assert.throws(() => decrypt('otel-config:ours', changed), UnreadableSecret, changed)
      assert.throws(() => decrypt('otel-config:ours', secret.slice(0, at)), UnreadableSecret)
    }
    for (const text of ['', 'text', 'v1..', 'v2.00000000.AAAA']) {
      assert.throws(() => decrypt('otel-config:ours', text), UnreadableSecret)
    }
  })

  test('the error about a secret that cannot be decrypted contains neither the encrypted nor the plain text', () => {
    const secret = encrypt('a', 'open sesame')
    assert.throws(
      () => decrypt('b', secret),
      ({ message }: Error) => {
        assert.equal(message, 'The secret of b cannot be read: it was changed, or is of something else.')
        return true
      },
    )
  })

  test('an older key decrypts but does not encrypt; `isCurrent` is false for a secret of an older key', () => {
    const before = encrypt('a', 'text')
    const replaced = createEncryption([two, one])
    assert.equal(replaced.decrypt('a', before), 'text')
    const again = replaced.encrypt('a', 'text')
    assert.deepEqual([before, again].map(replaced.isCurrent), [false, true])
    assert.equal(createEncryption([two]).decrypt('a', again), 'text')
    assert.throws(() => createEncryption([two]).decrypt('a', before), /there is no key/)
  })
})

suite('an encryption key', () => {
  test('an encryption key is 32 bytes in base64, in the standard or the URL-safe alphabet', () => {
    assert.equal(readEncryptionKey(newEncryptionKey())?.length, 32)
    const key = Buffer.alloc(32, 0xff)
    for (const text of [key.toString('base64'), key.toString('base64url')]) {
      assert.deepEqual(readEncryptionKey(text), key)
    }
    for (const text of [
      '',
      'x',
      'A'.repeat(42),
      'A'.repeat(64),
      `${'A'.repeat(42)}!=`,
      randomBytes(31).toString('base64'),
    ])
      assert.equal(readEncryptionKey(text), undefined, text)
  })
})
