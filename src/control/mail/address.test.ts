import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { foldAddress, readAddress } from './address.ts'

suite('e-mail addresses', () => {
  test('two e-mail addresses are equal if they differ only in the case of A to Z', () => {
    assert.equal(readAddress('email', ' Ada.Lovelace+X@Example.COM '), 'ada.lovelace+x@example.com')
    assert.equal(readAddress('email', 'admin@localhost'), 'admin@localhost')
    assert.equal(foldAddress('ADA@EXAMPLE.COM'), 'ada@example.com')
    // JavaScript changes the Kelvin sign to k in lower case, and the dotted capital I to i. Both addresses must stay different
    // from `kim@example.com`.
    for (const other of ['\u212aim@example.com', 'K\u0130m@example.com']) {
      assert.notEqual(foldAddress(other), foldAddress('kim@example.com'))
      assert.throws(() => readAddress('email', other), { code: 'bad_request' })
    }
  })

  test('an e-mail address has at most 254 characters', () => {
    const address = `ada@${'a.'.repeat(124)}aa`
    assert.equal(address.length, 254)
    assert.equal(readAddress('email', address), address)
    assert.throws(() => readAddress('email', `a${address}`), { code: 'bad_request' })
  })

  test('an e-mail address is refused if it could have a special meaning in a mail header or envelope', () => {
    const wrong = [
      '',
      'ada',
      '@example.com',
      'ada@',
      'ada@@example.com',
      'ada@example.com, eve@example.com',
      'ada@example.com\r\nBcc: eve@example.com',
      'ada\u2028@example.com',
      '"ada lovelace"@example.com',
      'Ada <ada@example.com>',
      'ada@[127.0.0.1]',
      'ada@-example.com',
      'ada@example-.com',
      'ada@example..com',
      '.ada@example.com',
      'ada.@example.com',
      'ada@exam_ple.com',
      `${'a'.repeat(65)}@example.com`,
      `ada@${'a'.repeat(64)}.com`,
      `ada@${'a.'.repeat(130)}com`,
    ]
    for (const given of wrong) assert.throws(() => readAddress('email', given), { code: 'bad_request' }, given)
  })
})
