import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAskedFor, linesOf, pastedText } from './pasted-text.ts'

test('a pasted text loses its escape characters, so it cannot end the terminal’s bracketed paste', () => {
  assert.equal(pastedText('a\x1b[201~rm -rf /\x9b201~'), 'a[201~rm -rf /201~')
})

test('a text that is pasted into a terminal keeps tabs, line ends and the letters of all languages', () => {
  assert.equal(pastedText('a\tb\r\nü 日本'), 'a\tb\r\nü 日本')
})

test('before a paste into a terminal, the dashboard asks the user only if the text has a line end', () => {
  assert.equal(isAskedFor('ls'), false)
  assert.equal(isAskedFor('ls\n'), true)
})

test('the number of lines of a pasted text does not include an empty last line', () => {
  assert.deepEqual(['a', 'a\n', 'a\r\nb', 'a\rb\n\n'].map(linesOf), [1, 1, 2, 3])
})
