import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { Blobs } from './blobs.ts'

suite('downloaded layers', { skip: needsRoot }, () => {
  test('one that two images bring at the same moment is taken by both', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alcove-blobs-'))
    try {
      const blobs = new Blobs(join(directory, 'blobs'))
      await blobs.open()
      const content = randomBytes(1_000_000)
      const name = createHash('sha256').update(content).digest('hex')
      const left = await Promise.all(
        ['one', 'two', 'three'].map(async (image) => {
          const from = join(directory, image)
          await mkdir(from)
          await writeFile(join(from, name), content)
          return from
        }),
      )
      await Promise.all(left.map((from) => blobs.take(`sha256:${name}`, from)))
      assert.deepEqual(await readdir(join(directory, 'blobs')), [name])
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
