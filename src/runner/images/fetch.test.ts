import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { Blobs } from './blobs.ts'
import { fetchFromFile } from './fetch.ts'
import { standardLimits } from './limits.ts'
import { digestOf, makeImage, tarOf, writeLayout } from './testing/oci-image.ts'

suite('checks of downloaded image files', { skip: needsRoot }, () => {
  test('every downloaded file is hashed, even if a file with its digest is stored already', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'alcove-fetch-'))
    try {
      const kept = new Blobs(join(directory, 'blobs'))
      const source = join(directory, 'source')
      await Promise.all([kept.open(), mkdir(source)])
      const layers = [tarOf([{ path: 'a' }])]
      const image = makeImage({ layers })
      const { digest } = JSON.parse(image.manifest.toString()).config as { digest: string }
      const fetchAs = async (name: string, described: Buffer | undefined) => {
        const scratch = join(directory, name)
        await mkdir(scratch)
        const read = async (_transport: string, _path: string, work: string) => {
          for (const path of [work, join(work, 'layout')]) writeLayout(image, path)
          if (described) await writeFile(join(work, 'blobs/sha256', digest.slice('sha256:'.length)), described)
        }
        const fetching = { scratch, mostBytes: 1e6, limits: { ...standardLimits, keepFreeBytes: 0 }, onBytes: () => {} }
        const { signal } = new AbortController()
        return fetchFromFile({ read }, kept.of('files'), source, { ...fetching, signal })
      }
      assert.deepEqual((await fetchAs('first', undefined)).described.diffIds, layers.map(digestOf))
      const another = makeImage({ layers, diffIds: [digestOf('what another is made of')] })
      const lie = [...another.blobs.values()].find((bytes) => bytes.includes('diff_ids'))
      await assert.rejects(fetchAs('second', lie), { failure: 'corrupted' })
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})
