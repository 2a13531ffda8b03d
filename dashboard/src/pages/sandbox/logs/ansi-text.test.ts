import assert from 'node:assert/strict'
import { test } from 'node:test'
import { piecesOf, plainText } from './ansi-text.ts'

test('in a log line, escape sequences for colours and bold become CSS classes until a sequence resets them', () => {
  assert.deepEqual(piecesOf('a\x1b[31mred\x1b[1;92mbold\x1b[0mz\x1b[m'), [
    { text: 'a', className: '' },
    { text: 'red', className: 'ansi-red' },
    { text: 'bold', className: 'ansi-green ansi-bold' },
    { text: 'z', className: '' },
  ])
})

test('in a log line, escape sequences for 256 colours and RGB colours are ignored with all parameters', () => {
  assert.deepEqual(piecesOf('\x1b[38;5;31mx\x1b[48;2;1;31;1my'), [
    { text: 'x', className: '' },
    { text: 'y', className: '' },
  ])
})

test('a log line is shown without its escape sequences for titles, links, the clipboard and the cursor', () => {
  const line =
    'a\x1b]0;title\x07b\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\\x1b]52;c;eA==\x07c\x1b[2J\x1b[10;10Hd\x1bPq\x1b\\e\x1b(B\x1bcf'
  assert.equal(plainText(line), 'ablinkcdef')
})

test('an escape sequence without an end is removed together with the rest of its line', () => {
  assert.equal(plainText(`x\x1b]0;${'y'.repeat(4000)}`), 'x')
  assert.equal(plainText('\x1b'.repeat(4000)), '')
  assert.equal(plainText('\x1b['.repeat(2000)).includes('\x1b'), false)
})

test('a log line is shown with visible signs in place of control characters, except tabs', () => {
  assert.equal(plainText('a\tb\x00\u202Ec'), 'a\tb\uFFFD\uFFFDc')
})

test('if carriage returns overwrite a log line, such as a progress bar, its last text is shown', () => {
  assert.equal(plainText('10%\r50%\r100%\r'), '100%')
})
