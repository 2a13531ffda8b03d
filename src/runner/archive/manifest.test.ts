import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { ArchiveFailed } from './failed.ts'
import { type Manifest, readManifest, storedBytesOf, writeManifest } from './manifest.ts'

const hash = (letter: string) => letter.repeat(64)
const manifest: Manifest = {
  sandboxId: 'box',
  archiveId: 'one',
  createdAt: '2026-11-22T00:00:00.000Z',
  bytes: 25,
  sha256: hash('f'),
  chunks: [
    { sha256: hash('a'), bytes: 10, storedBytes: 5 },
    { sha256: hash('b'), bytes: 5, storedBytes: 4 },
    { sha256: hash('a'), bytes: 10, storedBytes: 5 },
  ],
}
const whole = writeManifest(manifest)
const read = (content: Buffer | string) => readManifest(Buffer.from(content), { sandboxId: 'box' }, 'one')

const isSaid = (error: unknown) => {
  assert.ok(error instanceof ArchiveFailed, String(error))
  assert.equal(error.why, 'damaged')
  return true
}
const changed = (over: Record<string, unknown>) => JSON.stringify({ ...JSON.parse(whole.toString()), ...over })

suite('the manifest of an archive', () => {
  test('reading a manifest returns what was written; `storedBytesOf` adds the size of a repeated chunk once', () => {
    assert.deepEqual(read(whole), manifest)
    assert.equal(storedBytesOf(manifest), 9)
  })

  test('a manifest that is cut off at any byte is refused', () => {
    for (let length = 0; length < whole.length; length += 1) {
      assert.throws(() => read(whole.subarray(0, length)), isSaid)
    }
  })

  test('a manifest is refused if it belongs to another sandbox or to another archive', () => {
    assert.throws(() => readManifest(whole, { sandboxId: 'other' }, 'one'), isSaid)
    assert.throws(() => readManifest(whole, { sandboxId: 'box' }, 'two'), isSaid)
    assert.throws(() => readManifest(whole, { image: 'box' }, 'one'), isSaid)
  })

  test('a manifest of a newer format version is refused, and the error says so', () => {
    assert.throws(() => read(changed({ format: 2 })), /newer version/)
  })

  const wrong: Record<string, unknown>[] = [
    { format: '1' },
    { format: 0 },
    { content: 'cpio' },
    { compression: 'none' },
    { createdAt: 1 },
    { bytes: 26 },
    { bytes: -25 },
    { bytes: '25' },
    { sha256: hash('F') },
    { sha256: `../${hash('f').slice(3)}` },
    { chunks: {} },
    { chunks: [[hash('a'), 25]] },
    { chunks: [[hash('a'), 25, 0]] },
    { chunks: [[hash('a'), 25.5, 5]] },
    { chunks: [[`../../${'a'.repeat(58)}`, 25, 5]] },
    { chunks: [[hash('a'), 25, 5, 1]] },
    { chunks: [[hash('a'), 2 ** 40, 5]] },
    { chunks: [null] },
    { chunks: [{ sha256: hash('a'), bytes: 25, storedBytes: 5 }] },
  ]
  for (const over of wrong) {
    test(`a manifest with the invalid field ${JSON.stringify(over).slice(0, 60)} is refused`, () => {
      assert.throws(() => read(changed(over)), isSaid)
    })
  }

  test('reading any bytes as a manifest either succeeds or throws ArchiveFailed', () => {
    const tried = (content: Buffer | string) => {
      try {
        assert.deepEqual(readManifest(writeManifest(read(content)), { sandboxId: 'box' }, 'one'), read(content))
      } catch (error) {
        isSaid(error)
      }
    }
    fc.assert(fc.property(fc.uint8Array(), (bytes) => tried(Buffer.from(bytes))))
    fc.assert(fc.property(fc.json(), (text) => tried(text)))
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(JSON.parse(whole.toString()))), fc.jsonValue(), (name, value) =>
        tried(changed({ [name]: value })),
      ),
    )
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(255), (at, byte) => {
        const bent = Buffer.from(whole)
        bent[at] = byte
        tried(bent)
      }),
      { numRuns: 1000 },
    )
  })
})
