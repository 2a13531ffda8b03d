import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import fc from 'fast-check'
import { BadFrame, encodeFrame, FieldWriter, headerBytes, kinds, maxPayloadBytes } from './frames.ts'
import { PartFinder, type Piece, pourOutput, type TakePiece } from './pour-output.ts'

const names: Record<number, string> = { [kinds.stdout]: 'stdout', [kinds.stderr]: 'stderr' }
const frame = fc.record(
  {
    kind: fc.constantFrom(kinds.stdout, kinds.stderr, kinds.lost, kinds.exit),
    payload: fc.uint8Array({ minLength: 1, maxLength: 300, size: 'max' }),
  },
  { noNullPrototype: true },
)

/** Writes bytes as hexadecimal text. Joins consecutive bytes of the same stream. */
const heard = (said: [who: string, bytes: Uint8Array][]): [string, string][] =>
  said.reduce<[string, string][]>((all, [who, bytes]) => {
    const text = Buffer.from(bytes).toString('hex')
    const last = all.at(-1)
    if (last?.[0] === who && who.startsWith('std')) last[1] += text
    else if (text !== '' || !who.startsWith('std')) all.push([who, text])
    return all
  }, [])

/**
 * Returns a chunk with `headerBytes` unused bytes before it in memory, as in a connection's buffer. Consumers may write a header
 * there.
 */
const chunkOf = (bytes: Uint8Array): Buffer => Buffer.concat([Buffer.alloc(headerBytes), bytes]).subarray(headerBytes)

/**
 * Cuts a stream into chunks at `cuts`, and passes them to a `PartFinder`. Returns the parts that it yields. Overwrites each output
 * part and the `headerBytes` before it, as consumers may do.
 */
const findInPieces = (stream: Buffer, cuts: number[]): [string, Buffer][] => {
  const finder = new PartFinder()
  const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)).sort((a, b) => a - b), stream.length]
  const found: [string, Buffer][] = []
  for (const [index, end] of at.slice(1).entries()) {
    for (const part of finder.parts(chunkOf(stream.subarray(at[index], end)))) {
      if (part.type === 'output') {
        found.push([part.stream, Buffer.from(part.data)])
        Buffer.from(part.data.buffer, part.data.byteOffset - headerBytes, headerBytes + part.data.length).fill(0xff)
      } else if (part.type === 'frame') found.push([String(part.kind), part.payload])
      else assert.fail(part.type)
    }
  }
  return found
}

suite('parts in a stream of frames', () => {
  test('`PartFinder` returns all bytes of an agent’s output stream, however the stream is split into chunks', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), fc.array(fc.nat(), { maxLength: 30 }), (frames, cuts) => {
        const stream = Buffer.concat(frames.map(({ kind, payload }) => encodeFrame(kind, payload)))
        const said = frames.map(({ kind, payload }): [string, Uint8Array] => [names[kind] ?? String(kind), payload])
        assert.deepEqual(heard(findInPieces(stream, cuts)), heard(said))
      }),
    )
  })

  test('`PartFinder` joins consecutive frames of output of one stream into one part', () => {
    const said = [
      ...([
        [kinds.stdout, 'long begin'],
        [kinds.stdout, 'ning'],
        [kinds.stdout, 'end'],
      ] as const),
      ...([
        [kinds.stderr, 'short'],
        [kinds.stderr, 'and longer'],
      ] as const),
      ...([
        [kinds.exit, ''],
        [kinds.stderr, 'last'],
      ] as const),
    ]
    const stream = Buffer.concat(said.map(([kind, text]) => encodeFrame(kind, Buffer.from(text))))
    assert.deepEqual(
      findInPieces(stream, []).map(([who, bytes]) => [who, String(bytes)]),
      [
        ['stdout', 'long beginningend'],
        ['stderr', 'shortand longer'],
        [String(kinds.exit), ''],
        ['stderr', 'last'],
      ],
    )
  })

  test('the class `PartFinder` splits any bytes into output and other frames; its only error is BadFrame', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 5000, size: 'max' }),
        fc.array(fc.nat(), { maxLength: 9 }),
        (random, cuts) => {
          try {
            findInPieces(Buffer.from(random), cuts)
          } catch (error) {
            assert.ok(error instanceof BadFrame)
          }
        },
      ),
    )
  })

  test('`PartFinder` refuses a frame of output without bytes', () => {
    assert.throws(() => [...new PartFinder().parts(encodeFrame(kinds.stdout))], BadFrame)
  })

  test('`PartFinder` refuses a frame of more than 4096 bytes; a frame of output may have `maxPayloadBytes`', () => {
    for (const [kind, most] of [[kinds.stdout, maxPayloadBytes] as const, [kinds.exit, 4096] as const]) {
      const header = Buffer.alloc(5)
      header.writeUInt32LE(most + 1)
      header[4] = kind
      assert.throws(() => [...new PartFinder().parts(header)], BadFrame)
    }
  })
})

suite('passing on a command’s output with `pour`', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-pour-'))
  const path = join(directory, 'agent')
  let answer: (socket: Socket) => void
  let server: Server
  before(async () => {
    server = createServer((socket) => socket.once('data', () => answer(socket)).on('error', () => {})).listen(path)
    await once(server, 'listening')
  })
  after(() => {
    server.close()
    rmSync(directory, { recursive: true })
  })
  const pour = (take: TakePiece, signal = new AbortController().signal) =>
    pourOutput(path, kinds.commandAttach, new FieldWriter().u8(0), take, signal)
  /** Returns a consumer that takes each piece in a later turn of the event loop. */
  const slowly =
    (take: (piece: Piece) => void): TakePiece =>
    (piece, done) => {
      setImmediate(() => {
        take(piece)
        done()
      })
      return false
    }
  const ok = encodeFrame(kinds.ok)
  const exit = encodeFrame(kinds.exit, Buffer.of(0, 7, 0, 0, 0))

  test('`pour` gives a slow caller every byte of a job’s output, and returns the job’s exit', async () => {
    const whole = Buffer.alloc(3 * 1024 * 1024, 'the quick brown fox ')
    answer = (socket) => {
      socket.write(ok)
      for (let at = 0; at < whole.length; at += 60_000) {
        socket.write(encodeFrame(kinds.stdout, whole.subarray(at, at + 60_000)))
      }
      socket.end(exit)
    }
    const taken: Buffer[] = []
    const last = Promise.withResolvers<void>()
    let size = 0
    const take = slowly((piece) => {
      const { data } = piece as { data: Buffer }
      taken.push(Buffer.from(data))
      size += data.length
      if (size === whole.length) last.resolve()
    })
    const payload = await pour((piece, done) => {
      assert.equal(piece.type, 'output')
      const { data } = piece as { data: Buffer }
      // A consumer may overwrite `headerBytes` bytes before the data. This consumer overwrites three of them, and later pieces must
      // still be right.
      Buffer.from(data.buffer, data.byteOffset - 3, 3).fill(1)
      return take(piece, done)
    })
    await last.promise
    assert.deepEqual(payload, Buffer.of(0, 7, 0, 0, 0))
    assert.ok(Buffer.concat(taken).equals(whole))
  })

  test('`pour` reports a job’s lost output, and returns `undefined` if the agent sends END, not EXIT', async () => {
    const lost = encodeFrame(kinds.lost, new FieldWriter().u64(12).done())
    answer = (socket) => void socket.end(Buffer.concat([ok, lost, encodeFrame(kinds.end)]))
    const pieces: Piece[] = []
    assert.equal(await pour((piece) => pieces.push(piece) > 0), undefined)
    assert.deepEqual(pieces, [{ type: 'truncated', lostBytes: 12 }])
  })

  test('`pour` of a job’s output ignores an agent’s frames after EXIT or END', async () => {
    const more = encodeFrame(kinds.stdout, Buffer.from('more'))
    for (const end of [exit, encodeFrame(kinds.end)]) {
      answer = (socket) => {
        socket.write(Buffer.concat([ok, end, more]))
        setImmediate(() => socket.end(more))
      }
      const taken: Piece[] = []
      await pour((piece) => taken.push(piece) > 0)
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
      assert.deepEqual(taken, [])
    }
  })

  test('`pour` throws if the agent refuses, closes the connection or sends a wrong frame', async () => {
    const never = () => assert.fail('nothing was to be taken')
    answer = (socket) => void socket.end(encodeFrame(kinds.failed, Buffer.of(8, 3, 0, 0, 0)))
    await assert.rejects(pour(never), { name: 'AgentRefused', stage: 'job', errno: 'ESRCH' })
    answer = (socket) => void socket.end(ok)
    await assert.rejects(pour(never), { name: 'AgentGone' })
    answer = (socket) => void socket.end(encodeFrame(kinds.stdout, Buffer.of(1)))
    await assert.rejects(pour(never), BadFrame)
    answer = (socket) => void socket.end(Buffer.concat([ok, encodeFrame(kinds.job)]))
    await assert.rejects(pour(never), BadFrame)
  })

  test('`pour` of a job’s output ends when the caller aborts, even while no output arrives', async () => {
    answer = (socket) => void socket.write(ok)
    const gone = new AbortController()
    const pouring = pour(() => true, gone.signal)
    setImmediate(() => gone.abort())
    assert.equal(await pouring, undefined)
  })
})
