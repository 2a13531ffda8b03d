import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { asJson, cleanLine, cleanLines } from './clean.ts'
import { asTable } from './print/table.ts'

/** A hostile name. It sets colors and a title, and has a C1 control, a line break, reversed text and a hidden character. */
const hostile = 'a\u001b[31m\u001b]0;t\u0007\u009b2J\r\n\u202eb\u200b\u2028\ud800'

/** Characters that a terminal interprets, apart from the line feed. */
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u

suite('text from a server, made safe for a terminal', () => {
  test('`alcove` escapes each character of a line that a terminal would interpret', () => {
    assert.doesNotMatch(cleanLine(hostile), unsafe)
    assert.match(cleanLine(hostile), /^a\\u\{1b\}\[31m\\u\{1b\}\]0;t\\u\{7\}\\u\{9b\}2J\\u\{d\}\\u\{a\}\\u\{202e\}b/)
  })

  test('`alcove` prints letters of all languages and emoji in a line unchanged', () => {
    assert.equal(cleanLine('Grüße 你好 🙂 a-b_c'), 'Grüße 你好 🙂 a-b_c')
  })

  test('in a text of several lines, `alcove` escapes what a terminal interprets, except line breaks and tabs', () => {
    assert.equal(cleanLines('a\r\nb\tc\rd\u001b'), 'a\nb\tc\\u{d}d\\u{1b}')
  })

  test('`asJson` escapes characters that a terminal interprets; `JSON.parse` reads the same value from it', () => {
    const value = { [hostile]: [hostile] }
    assert.doesNotMatch(asJson(value).replaceAll('\n', ''), unsafe)
    assert.deepEqual(JSON.parse(asJson(value)), value)
  })

  test('`alcove` prints exactly one line for each row of a table, whatever characters the cells contain', () => {
    const table = asTable(
      ['ID', 'NAME'],
      [
        ['1', hostile],
        ['22', 'b'],
      ],
    )
    assert.doesNotMatch(table.replaceAll('\n', ''), unsafe)
    const [head, first, second, end] = table.split('\n')
    assert.deepEqual([head, second, end], ['ID  NAME', '22  b', ''])
    assert.ok(first?.startsWith('1   a\\u{1b}'))
  })
})
