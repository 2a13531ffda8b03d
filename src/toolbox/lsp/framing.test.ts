import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { encodeMessage, MessageReader, messageBytes } from './framing.ts'

const read = (...pieces: (string | Buffer)[]) => {
  const reader = new MessageReader()
  return pieces.flatMap((piece) => reader.push(Buffer.from(piece)))
}
const framed = (body: string) => `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

suite('messages of a language server', () => {
  test('`MessageReader` finds a language server’s messages in the stream, however the stream is split', () => {
    const stream = Buffer.concat([encodeMessage({ id: 1, result: 'ä\r\n\r\n' }), encodeMessage({ id: 2 })])
    const expected = [
      { jsonrpc: '2.0', id: 1, result: 'ä\r\n\r\n' },
      { jsonrpc: '2.0', id: 2 },
    ]
    assert.deepEqual(read(stream), expected)
    for (const size of [1, 2, 7, 30]) {
      const pieces = Array.from({ length: Math.ceil(stream.length / size) }, (_, n) =>
        stream.subarray(n * size, (n + 1) * size),
      )
      assert.deepEqual(read(...pieces), expected, `pieces of ${size}`)
    }
  })

  test('`MessageReader` reads Content-Length in any letter case, and ignores other header fields', () => {
    const header = 'content-type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-LENGTH:  2 \r\n\r\n{}'
    assert.deepEqual(read(header), [{}])
  })

  test('a language server’s message with an invalid or too large length is refused before its body arrives', () => {
    for (const length of ['', '-1', '+1', '1e3', '0x10', '1.0', '99999999999', 'NaN', `${messageBytes + 1}`]) {
      assert.throws(() => read(`Content-Length: ${length}\r\n\r\n`), { name: 'BadServer' }, length)
    }
    assert.deepEqual(read(`Content-Length: ${messageBytes}\r\n\r\n`), [])
    assert.throws(() => read('Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}'), { name: 'BadServer' })
    assert.throws(() => read('Other: 2\r\n\r\n{}'), { name: 'BadServer' })
  })

  test('a language server’s message is refused if the header does not end within 4096 bytes', () => {
    const reader = new MessageReader()
    assert.deepEqual(reader.push(Buffer.alloc(4000, 'x')), [])
    assert.throws(() => reader.push(Buffer.alloc(200, 'x')), { name: 'BadServer' })
  })

  test('a language server’s message that is no JSON object, or too large or too deep, is refused', () => {
    const deep = '['.repeat(20_000) + ']'.repeat(20_000)
    const many = `[${'1,'.repeat(300_000)}1]`
    for (const body of ['', '{', 'null', '1', '"text"', deep, many]) {
      assert.throws(() => read(framed(body), framed('{}')), { name: 'BadServer' }, body.slice(0, 20))
    }
  })
})
