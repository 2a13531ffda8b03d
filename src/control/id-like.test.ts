import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { isIdLike, isTokenLike, looksLikeId } from './id-like.ts'

suite('names that look like ids or tokens', () => {
  test('`isIdLike` recognizes a UUID in any case, with other separators, a URN prefix or invisible letters', () => {
    const id = randomUUID()
    const wide = id.replaceAll(/[0-9a-f]/g, (letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0))
    for (const name of [
      id,
      id.toUpperCase(),
      id.replaceAll('-', ''),
      id.replaceAll('-', '_'),
      id.replaceAll('-', '.'),
      id.replaceAll('-', '\u2010'),
      id.replaceAll('-', '\u2212'),
      id.replaceAll('-', '\u30fc'),
      id.replaceAll('-', '~'),
      `"${id}"`,
      `{${id}}`,
      `urn:uuid:${id}`,
      ` ${id} `,
      wide,
      `${id.slice(0, 5)}\u00ad${id.slice(5)}`,
      '00000000-0000-0000-0000-000000000000',
    ]) {
      assert.equal(isIdLike(name), true, name)
    }
  })

  test('a new sandbox cannot have a name that looks like an id; older sandboxes with such names are found', () => {
    const id = '01230123-abcd-4ef6-8abc-deadbeef0001'
    for (const [from, to] of [
      ['a', '\u0430'],
      ['a', '\u03b1'],
      ['c', '\u0441'],
      ['e', '\u0435'],
      ['e', 'e\u0301'],
      ['e', '\u00e9'],
      ['d', '\u0501'],
      ['b', '\u044c'],
      ['3', '\u0437'],
      ['6', '\u0431'],
      ['0', 'o'],
      ['0', '\u043e'],
      ['1', 'l'],
      ['1', '\u0456'],
    ] as const) {
      const name = id.replaceAll(from, to)
      assert.deepEqual([looksLikeId(name), looksLikeId(`urn:uuid:${name}`), isIdLike(name)], [true, true, false], name)
    }
    assert.deepEqual([looksLikeId(id), looksLikeId(id.toUpperCase())], [true, true])
    const words = [
      '\u043c\u043e\u044f-\u043f\u0435\u0441\u043e\u0447\u043d\u0438\u0446\u0430',
      'deadbeef-box',
      'loadable-feed-of-a-cool-blob',
      `agent-${id}`,
    ]
    for (const name of words) assert.equal(looksLikeId(name), false, name)
  })

  test('`isIdLike` is false for a text that contains an id, or is longer or shorter than an id', () => {
    const id = randomUUID()
    for (const name of [`agent-${id}`, `${id}-2`, id.slice(1), `${id}0`, 'box', '', 'feed-beef-1']) {
      assert.equal(isIdLike(name), false, name)
    }
  })

  test('`isTokenLike` recognizes 16 letters and digits in any case, but not with a dash or another length', () => {
    for (const name of [
      'abcdefghijklmn01',
      'ABCDEFGHIJKLMN01',
      'abcdefgh\u200bijklmn01',
      '\u0430b\u0441defghijklmn01',
      '0123456789012345',
    ]) {
      assert.equal(isTokenLike(name), true, name)
    }
    for (const name of [
      '\u043f\u0435\u0441\u043e\u0447\u043d\u0438\u0446\u0430\u0431\u043e\u043b\u044c\u0448\u0430\u044f',
      'abcdefgh-jklmn01',
      'abcdefghijklmn0',
      'abcdefghijklmn012',
      'my box',
    ]) {
      assert.equal(isTokenLike(name), false, name)
    }
  })
})
