import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test } from 'node:test'
import { isIdLike, isTokenLike } from './id-like.ts'

suite('names that read like ids or tokens', () => {
  test('every way to write a UUID is one: case, separators, none, braces, a URN, wide or invisible letters', () => {
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

  test('a name that has an id in it is none, nor is one that is longer or shorter', () => {
    const id = randomUUID()
    for (const name of [`agent-${id}`, `${id}-2`, id.slice(1), `${id}0`, 'box', '', 'feed-beef-1']) {
      assert.equal(isIdLike(name), false, name)
    }
  })

  test('sixteen letters and digits are a token, in any case; with a dash or another length they are none', () => {
    for (const name of ['abcdefghijklmn01', 'ABCDEFGHIJKLMN01', 'abcdefgh\u200bijklmn01', '0123456789012345']) {
      assert.equal(isTokenLike(name), true, name)
    }
    for (const name of ['abcdefgh-jklmn01', 'abcdefghijklmn0', 'abcdefghijklmn012', 'my box']) {
      assert.equal(isTokenLike(name), false, name)
    }
  })
})
