import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createDownloadLines } from './download-lines.ts'

const MiB = 1024 ** 2

suite('lines of a build log about an image download', () => {
  test('a build log gets one line for each tenth of a download, with bytes and layers', () => {
    const lineAt = createDownloadLines({ layers: 5, bytes: 310 * MiB })
    assert.equal(lineAt(30 * MiB, 0), undefined)
    assert.equal(lineAt(120 * MiB, 1), 'downloaded 120 MiB of 310 MiB, 1 of 5 layers complete')
    assert.equal(lineAt(121 * MiB, 2), undefined)
    assert.equal(lineAt(10 * MiB, 2), undefined)
  })

  test('the download progress in a build log never exceeds the total, even if more bytes arrive', () => {
    const lineAt = createDownloadLines({ layers: 2, bytes: MiB })
    assert.equal(lineAt(3 * MiB, 4), 'downloaded 1 MiB of 1 MiB, 2 of 2 layers complete')
  })

  test('a build log gets at most ten lines about a download', () => {
    const lineAt = createDownloadLines({ layers: 1, bytes: 1000 })
    const lines = Array.from({ length: 1001 }, (_, came) => lineAt(came, 0)).filter((line) => line !== undefined)
    assert.equal(lines.length, 10)
  })
})
