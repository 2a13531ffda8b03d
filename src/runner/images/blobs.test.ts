import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { Blobs } from './blobs.ts'
import { ImageFailed } from './image-failed.ts'

suite('downloaded layers', { skip: needsRoot }, () => {
  test('a layer that several images download at the same time is stored once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alcove-blobs-'))
    try {
      const kept = new Blobs(join(directory, 'blobs'))
      await kept.open()
      const blobs = kept.of('registry/repository')
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
      const names = await readdir(join(directory, 'blobs'))
      assert.deepEqual([names.length, names[0]?.endsWith(name)], [1, true])
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })

  test('a layer downloaded from one repository is not given to images of another repository', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alcove-blobs-'))
    try {
      const kept = new Blobs(join(directory, 'blobs'))
      await kept.open()
      const name = createHash('sha256').update('secret').digest('hex')
      const [digest, has, empty] = [`sha256:${name}`, join(directory, 'has'), join(directory, 'empty')]
      await Promise.all([has, empty].map((path) => mkdir(path)))
      await writeFile(join(has, name), 'secret')
      await kept.of('registry/theirs').take(digest, has)

      const others = kept.of('registry/others')
      assert.equal(await others.offer(digest, empty), false)
      await assert.rejects(others.take(digest, empty), ImageFailed)
      assert.deepEqual([await readdir(empty), (await readdir(join(directory, 'blobs'))).length], [[], 1])
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
