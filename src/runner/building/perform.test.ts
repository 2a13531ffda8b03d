import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { ImageFailed } from '../images/image-failed.ts'
import type { Library } from '../images/library.ts'
import { copyOf } from './mounts.ts'
import { perform } from './perform.ts'
import type { StageLog } from './stage-log.ts'
import type { Workplace } from './workplace.ts'

/** Performs an ADD of files with these sizes. Returns how large each file may be when its download begins. */
const add = async (sizes: number[], mostBytes: number) => {
  const allowed: number[] = []
  const withWebFile = (async ({ mostBytes }, use) => {
    const size = sizes[allowed.length] as number
    allowed.push(mostBytes)
    if (size > mostBytes) throw new ImageFailed('too-large', 'It is too large.')
    return use({ file: undefined as never, size, modifiedSeconds: 0, digest: '' })
  }) satisfies Library['withWebFile']
  const files = { stat: async () => undefined, unpack: async () => {} }
  const urls = sizes.map((_, at) => ({ url: `http://x/${at}`, name: `${at}` }))
  await perform(
    { files: () => files } as unknown as Workplace,
    { line: 1, text: 'ADD', copy: { ...copyOf('', '/to/'), sources: [], urls } },
    {
      ...{
        log: { add: () => {} } as unknown as StageLog,
        mostBytes,
        signal: new AbortController().signal,
        withWebFile,
      },
      withRepository: () => assert.fail('no repository is named'),
      sourceOf: () => assert.fail('no files are copied'),
    },
  )
  return allowed
}

suite('ADD of several URLs', () => {
  test('the files of all URLs of one ADD together may be as large as the image, and a larger one is refused', async () => {
    const refused = {
      failure: 'too-large',
      message: 'The files are together larger than the image may be (100 bytes).',
    }
    assert.deepEqual(await add([30, 30, 40], 100), [100, 70, 40])
    await assert.rejects(add([30, 30, 41], 100), refused)
    await assert.rejects(add([100, 0], 100), refused)
    await assert.rejects(add([101], 100), { message: 'It is too large.' })
  })
})
