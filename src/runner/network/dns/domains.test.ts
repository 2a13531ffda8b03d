import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isDomain, isListed } from './domains.ts'

suite('names that a sandbox’s list of allowed domains allows', () => {
  for (const [name, isThere] of [
    ['api.example.com', true],
    ['a.b.test', true],
    ['deep.a.b.test', true],
    ['b.test', false],
    ['xb.test', false],
    ['example.com', false],
    ['xapi.example.com', false],
    ['api.example.com.evil.test', false],
    ['', false],
  ] as const) {
    test(`the list [api.example.com, *.b.test] ${isThere ? 'allows' : 'does not allow'} the name "${name}"`, () => {
      assert.equal(isListed(['api.example.com', '*.b.test'], name), isThere)
    })
  }

  test('an allowed domain has at least two labels (parts between dots), and a star only as the first label', () => {
    for (const good of ['a.b', '*.a.b', 'xn--bcher-kva.example', '_dmarc.example.com', '1.test']) {
      assert.ok(isDomain(good), good)
    }
    for (const bad of [
      'a',
      '*',
      '*.a',
      '*a.b',
      'a.*.b',
      'A.b',
      'a..b',
      '.a.b',
      'a.b.',
      '-a.b',
      'a-.b',
      'ü.b',
      `${'a'.repeat(64)}.b`,
    ]) {
      assert.ok(!isDomain(bad), bad)
    }
    assert.ok(!isDomain(Array(64).fill('aaa').join('.')))
  })
})
