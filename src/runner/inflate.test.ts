import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { users } from '#src/kit/confined.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Damaged, inflate } from './inflate.ts'

async function* of(...pieces: Buffer[]) {
  yield* pieces
}

const whole = async (pieces: AsyncIterable<Buffer>): Promise<Buffer> => {
  const found: Buffer[] = []
  for await (const piece of pieces) found.push(piece)
  return Buffer.concat(found)
}

const text = Buffer.from('what was packed\n'.repeat(100_000))
const packedBy = (program: string) => (input: Buffer) => execFileSync(program, ['-c'], { input, maxBuffer: 2 ** 28 })
const packers = { gzip: gzipSync, zstd: zstdCompressSync, bzip2: packedBy('bzip2'), xz: packedBy('xz') } as const

/** Returns the kernel's status text of each process that is decompressing now. */
const running = () =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8')
        return status.includes(`Uid:\t${users.unpacker}\t`) && !/^State:\tZ/m.test(status) ? [status] : []
      } catch {
        return []
      }
    })

suite('decompressing hostile data', () => {
  for (const kind of ['gzip', 'zstd', 'bzip2', 'xz'] as const) {
    test(`${kind}: decompression returns the contents, even if the stream has several compressed parts`, async () => {
      const packed = packers[kind](text)
      assert.ok(
        (await whole(inflate(of(packed.subarray(0, 9), packed.subarray(9), packed), kind))).equals(
          Buffer.concat([text, text]),
        ),
      )
    })

    test(`${kind}: decompression refuses damaged and truncated data, and throws an error of its input stream`, async () => {
      const packed = packers[kind](text)
      await assert.rejects(whole(inflate(of(Buffer.from('no such thing at all')), kind)), Damaged)
      await assert.rejects(whole(inflate(of(packed.subarray(0, packed.length - 12)), kind)), Damaged)
      const failing = async function* () {
        yield packed.subarray(0, 20)
        throw new RangeError('the store is away')
      }
      await assert.rejects(whole(inflate(failing(), kind)), /the store is away/)
    })
  }

  test('the process that decompresses data is unprivileged, and ends when its output is no longer read', {
    skip: needsRoot,
  }, async () => {
    const piece = zstdCompressSync(Buffer.alloc(1024 ** 2))
    const endless = async function* () {
      for (;;) yield piece
    }
    const pieces = inflate(endless(), 'zstd')
    await pieces.next()
    const [status = ''] = running()
    assert.match(status, /^CapBnd:\t0+$/m)
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.match(status, /^Seccomp:\t2$/m)
    await pieces.return(undefined)
    assert.deepEqual(running(), [])
  })
})
