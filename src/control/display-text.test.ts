import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readDisplayText } from './display-text.ts'

suite('names that users choose', () => {
  test('`readDisplayText` removes the spaces around a name, and changes nothing else in the name', () => {
    for (const name of ['a', 'My build (2 < 3), 50 %', 'Ünïcödé 日本 🐢', "it's"]) {
      assert.equal(readDisplayText('name', ` ${name} `), name)
    }
  })

  test('`readDisplayText` refuses markup, URLs, control characters and empty names', () => {
    for (const name of [
      '',
      ' \t',
      '<script>',
      'a</b>',
      '<!-- x -->',
      'ftp://x',
      'WWW.x',
      'a\u0007',
      'a\u0085',
      '\ud800',
      'x'.repeat(256),
      'a\u2028b',
      'a\u202etxt.exe',
      '\u2067a',
      '\u200b\u200d',
      '\u0301',
    ]) {
      assert.throws(() => readDisplayText('name', name), { code: 'bad_request' }, JSON.stringify(name))
    }
  })
})
