import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAskedFor, linesOf, pastedText } from './pasted-text.ts'

test('a copied text cannot end the bracketed paste', () => {
  assert.equal(pastedText('a\x1b[201~rm -rf /\x9b201~'), 'a[201~rm -rf /201~')
})

test('tabs, line ends and all letters stay', () => {
  assert.equal(pastedText('a\tb\r\nü 日本'), 'a\tb\r\nü 日本')
})

test('a text with a line end is asked about, one without is not', () => {
  assert.equal(isAskedFor('ls'), false)
  assert.equal(isAskedFor('ls\n'), true)
})

test('lines are counted without the empty one after the last line end', () => {
  assert.deepEqual(['a', 'a\n', 'a\r\nb', 'a\rb\n\n'].map(linesOf), [1, 1, 2, 3])
})
