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

const bytes = fc.uint8Array({ maxLength: 300, size: 'max' }).map((array) => Buffer.from(array))
const output: number[] = [kinds.stdout, kinds.stderr, kinds.text]
const frame = fc
  .record({ kind: fc.nat(255), payload: bytes }, { noNullPrototype: true })
  .filter(({ kind, payload }) => payload.length > 0 || !output.includes(kind))

const decodeInPieces = (stream: Buffer, cuts: number[]): Frame[] => {
  const decoder = new FrameDecoder()
  const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length]
  return at.slice(1).flatMap((end, index) => decoder.push(stream.subarray(at[index], end)))
}

suite('frames between the gate and the agent', () => {
  test('`FrameDecoder` returns frames as they were written, however the stream is split', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, cuts) => {
        const stream = Buffer.concat(frames.map(({ kind, payload }) => encodeFrame(kind, payload)))
        assert.deepEqual(decodeInPieces(stream, cuts), frames)
      }),
    )
  })

  test('`FrameDecoder` turns whatever bytes it gets into frames of limited size, or throws a BadFrame', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 5000, size: 'max' }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (random, cuts) => {
          try {
            const frames = decodeInPieces(Buffer.from(random), cuts)
            assert.ok(frames.every(({ payload }) => payload.length <= maxPayloadBytes))
          } catch (error) {
            assert.ok(error instanceof BadFrame)
          }
        },
      ),
    )
  })

  test('`FrameDecoder` refuses a frame that is too long as soon as it has read the length in the header', () => {
    const header = Buffer.alloc(5)
    header.writeUInt32LE(maxPayloadBytes + 1)
    assert.throws(() => new FrameDecoder().push(header), BadFrame)
  })

  test('`FrameDecoder` refuses a frame of output without bytes', () => {
    for (const kind of output) assert.throws(() => new FrameDecoder().push(encodeFrame(kind)), BadFrame)
  })

  test('`FrameDecoder` reads a frame that arrives byte by byte', () => {
    const decoder = new FrameDecoder()
    const payload = Buffer.alloc(20_000, 'ab')
    const frames = [...encodeFrame(7, payload)].flatMap((byte) => decoder.push(Buffer.of(byte)))
    assert.deepEqual(frames, [{ kind: 7, payload }])
    assert.ok(decoder.isBetweenFrames)
  })

  test('`encodeRequest` splits a large request into frames, and refuses a request above 8 MiB', () => {
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

suite('fields in the payload of a frame', () => {
  test('`word` reads a number and returns the word at that position of a list, and refuses a larger number', () => {
    const words = ['waiting', 'running'] as const
    assert.equal(new FieldReader(Buffer.of(1)).word(words), 'running')
    assert.throws(() => new FieldReader(Buffer.of(2)).word(words), BadFrame)
  })

  test('`FieldReader` returns the fields that `FieldWriter` has written', () => {
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

  test('`FieldReader` returns fields from any bytes of a frame, or throws a BadFrame', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100, size: 'max' }), (random) => {
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

  test('`FieldWriter` refuses to write a text that contains a NUL', () => {
    assert.throws(() => new FieldWriter().string('a\0b'), TypeError)
  })
})
