import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanText } from './clean-text.ts'

test('a plain text stays as it is, in every script and with emoji', () => {
  for (const text of ['notes.txt', 'Grüße', '日本語', 'שלום', '👩‍💻 x', '<img src=x onerror=alert(1)>'])
    assert.equal(cleanText(text), text)
})

test('control characters become visible', () => {
  assert.equal(cleanText('a\nb\x1b[31m\x7f'), 'a‹000A›b‹001B›[31m‹007F›')
})

test('characters that turn the direction of writing become visible', () => {
  assert.equal(cleanText('photo\u202Egnp.exe'), 'photo‹202E›gnp.exe')
  assert.equal(cleanText('\u2066x\u2069'), '‹2066›x‹2069›')
})

test('a long text is cut, and never between the halves of a character', () => {
  assert.equal(cleanText('x'.repeat(1000), 10), `${'x'.repeat(10)}…`)
  assert.equal(cleanText('👩'.repeat(10), 3), '👩�…')
})
