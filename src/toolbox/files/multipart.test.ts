import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { boundaryOf, readParts } from './multipart.ts'

type Read = { name: string; contents: Buffer }

/** Yields the bytes in pieces of these sizes. Overwrites each piece when the next one is requested. */
async function* cut(bytes: Buffer, sizes: readonly number[]) {
  for (let at = 0, index = 0; at < bytes.length; index++) {
    const piece = Buffer.from(bytes.subarray(at, at + (sizes[index] ?? bytes.length)))
    at += piece.length
    yield piece
    piece.fill('?')
  }
}

const readAll = async (body: AsyncIterable<Buffer>, boundary: string): Promise<Read[]> => {
  const read: Read[] = []
  for await (const { name, contents } of readParts(body, boundary, 100)) {
    const pieces: Buffer[] = []
    for await (const piece of contents) pieces.push(Buffer.from(piece))
    read.push({ name, contents: Buffer.concat(pieces) })
  }
  return read
}

const write = (parts: readonly Read[], boundary: string): Buffer =>
  Buffer.concat([
    ...parts.flatMap(({ name, contents }) => [
      Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n`),
      contents,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ])

suite('multipart bodies of uploads', () => {
  test('`readParts` returns the parts of every multipart body, no matter where its chunks are cut', async () => {
    // Contents made of the characters of the boundary, so that they often contain the beginning of a boundary.
    const contents = fc
      .array(fc.constantFrom('\r', '\n', '-', '--', 'b', 'bo', '\r\n--b', 'x'), { maxLength: 20 })
      .map((pieces) => Buffer.from(pieces.join('')))
      .filter((bytes) => !bytes.includes('--bou'))
    const part = fc.record({ name: fc.constantFrom('a', 'files[0].path', ''), contents }, { noNullPrototype: true })
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { minLength: 1, maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 50 }),
        async (parts, sizes) => {
          assert.deepEqual(await readAll(cut(write(parts, 'bou'), sizes), 'bou'), parts)
        },
      ),
    )
  })

  test('`readParts` skips bytes before the first and after the last part, and contents that nobody reads', async () => {
    const body = Buffer.from(
      'preamble\r\n--b  \r\nContent-Type: text/plain\r\ncontent-disposition: FORM-DATA; filename="name=x"; name=plain\r\n\r\n1\r\n--b\r\n\r\nnameless\r\n--b--epilogue\r\n--b\r\n',
    )
    assert.deepEqual(await readAll(cut(body, [3]), 'b'), [
      { name: 'plain', contents: Buffer.from('1') },
      { name: '', contents: Buffer.from('nameless') },
    ])
    const names: string[] = []
    for await (const { name } of readParts(cut(body, [20]), 'b', 100)) names.push(name)
    assert.deepEqual(names, ['plain', ''])
  })

  test('`readParts` refuses an endless header, and stores only a little of it', async () => {
    let given = 0
    const endless = async function* () {
      yield Buffer.from('--b\r\n')
      for (;;) {
        given += 1000
        yield Buffer.alloc(1000, 'x')
      }
    }
    await assert.rejects(readAll(endless(), 'b'), { status: 400 })
    assert.ok(given < 32 * 1024)
  })

  test('`boundaryOf` returns the boundary in a content type, and refuses an invalid boundary', () => {
    assert.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc')
    assert.equal(boundaryOf('Multipart/Form-Data; charset=x; Boundary="a b"'), 'a b')
    assert.equal(boundaryOf('application/json'), undefined)
    assert.equal(boundaryOf('multipart/form-datax'), undefined)
    assert.equal(boundaryOf(undefined), undefined)
    for (const wrong of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      `multipart/form-data; boundary=${'x'.repeat(300)}`,
    ]) {
      assert.throws(() => boundaryOf(wrong), { status: 400 })
    }
  })
})
