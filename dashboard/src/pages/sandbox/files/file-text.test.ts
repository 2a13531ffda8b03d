import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readText } from './file-text.ts'

const read = (text: string) => readText(Buffer.from(text))

test('`readText` returns the whole text of a file, with its byte order mark', () => {
  assert.deepEqual(read('\uFEFFGrüße\n日本'), { text: '\uFEFFGrüße\n日本', lineEnd: '\n' })
})

test('`readText` reports Windows line ends only for a file in which all lines have them', () => {
  assert.equal(read('a\r\nb\r\n')?.lineEnd, '\r\n')
  assert.equal(read('a\r\nb\n')?.lineEnd, '\n')
  assert.equal(read('a\rb\r\n')?.lineEnd, '\n')
  assert.equal(read('a')?.lineEnd, '\n')
})

test('`readText` returns undefined for bytes that are not text', () => {
  assert.equal(read('a\0b'), undefined)
  assert.equal(readText(Uint8Array.of(0x61, 0xff, 0xfe)), undefined)
  assert.equal(readText(Uint8Array.of(0xc3)), undefined)
})
