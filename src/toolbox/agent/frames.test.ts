import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import {
  BadFrame,
  encodeFrame,
  encodeRequest,
  FieldReader,
  FieldWriter,
  type Frame,
  FrameDecoder,
  kinds,
  maxPayloadBytes,
} from './frames.ts'

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array))
const output: number[] = [kinds.stdout, kinds.stderr, kinds.text]
const frame = fc
  .record({ kind: fc.nat(255), payload: bytes }, { noNullPrototype: true })
  .filter(({ kind, payload }) => payload.length > 0 || !output.includes(kind))

const decodeInPieces = (stream: Buffer, cuts: number[]): Frame[] => {
  const decoder = new FrameDecoder()
  const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length]
  return at.slice(1).flatMap((end, index) => decoder.push(stream.subarray(at[index], end)))
}

suite('frames', () => {
  test('frames are read as they were written, however the stream was cut', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, cuts) => {
        const stream = Buffer.concat(frames.map(({ kind, payload }) => encodeFrame(kind, payload)))
        assert.deepEqual(decodeInPieces(stream, cuts), frames)
      }),
    )
  })

  test('random bytes become frames or a BadFrame, and never need more memory than one frame', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.array(fc.nat(), { maxLength: 9 }), (random, cuts) => {
        try {
          const frames = decodeInPieces(Buffer.from(random), cuts)
          assert.ok(frames.every(({ payload }) => payload.length <= maxPayloadBytes))
        } catch (error) {
          assert.ok(error instanceof BadFrame)
        }
      }),
    )
  })

  test('a frame with a too large length is refused before its payload comes', () => {
    const header = Buffer.alloc(5)
    header.writeUInt32LE(maxPayloadBytes + 1)
    assert.throws(() => new FrameDecoder().push(header), BadFrame)
  })

  test('a frame of output without bytes is refused', () => {
    for (const kind of output) assert.throws(() => new FrameDecoder().push(encodeFrame(kind)), BadFrame)
  })

  test('a frame that arrives byte by byte is decoded completely', () => {
    const decoder = new FrameDecoder()
    const payload = Buffer.alloc(20_000, 'ab')
    const frames = [...encodeFrame(7, payload)].flatMap((byte) => decoder.push(Buffer.of(byte)))
    assert.deepEqual(frames, [{ kind: 7, payload }])
    assert.ok(decoder.isBetweenFrames)
  })

  test('a large request is cut into several frames; a request above the limit is refused before it is sent', () => {
    const body = Buffer.alloc(maxPayloadBytes * 2 + 1, 'x')
    const frames = new FrameDecoder().push(Buffer.concat(encodeRequest(kinds.exec, body)))
    assert.deepEqual(
      frames.map(({ kind, payload }) => [kind, payload.length]),
      [
        [kinds.part, maxPayloadBytes],
        [kinds.part, maxPayloadBytes],
        [kinds.exec, 1],
      ],
    )
    // The agent refuses requests of more than 8 MiB (agent/PROTOCOL.md).
    assert.equal(encodeRequest(kinds.exec, Buffer.alloc(8 * 2 ** 20)).length > 0, true)
    assert.throws(() => encodeRequest(kinds.exec, Buffer.alloc(8 * 2 ** 20 + 1)), RangeError)
  })
})

suite('fields', () => {
  test('`word` returns the word for a number, and refuses a number that has no word', () => {
    const words = ['waiting', 'running'] as const
    assert.equal(new FieldReader(Buffer.of(1)).word(words), 'running')
    assert.throws(() => new FieldReader(Buffer.of(2)).word(words), BadFrame)
  })

  test('fields are read as they were written', () => {
    const name = fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => !text.includes('\0'))
    fc.assert(
      fc.property(fc.nat(255), fc.nat(0xffff), fc.nat(), fc.maxSafeNat(), name, bytes, (a, b, c, d, text, data) => {
        const payload = new FieldWriter().u8(a).u16(b).u32(c).u64(d).string(text).bytes(data).done()
        const fields = new FieldReader(payload)
        assert.deepEqual([fields.u8(), fields.u16(), fields.u32(), fields.u64()], [a, b, c, d])
        assert.deepEqual([fields.string(), fields.bytes()], [Buffer.from(text).toString(), data])
        fields.end()
      }),
    )
  })

  test('fields from random payloads are read or refused, and never used unchecked', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (random) => {
        const fields = new FieldReader(Buffer.from(random))
        try {
          fields.u8()
          fields.string()
          fields.bytes()
          fields.u64()
          fields.end()
        } catch (error) {
          assert.ok(error instanceof BadFrame)
        }
      }),
    )
  })

  test('a NUL in a name is refused', () => {
    assert.throws(() => new FieldWriter().string('a\0b'), TypeError)
  })
})
