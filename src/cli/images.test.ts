import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { RenewalFiles } from '#src/runner/images/renewal-files.ts'
import { dataDirectoryAt } from '#src/up/data-directory.ts'
import { describeDefaultImage } from './images.ts'

suite('the default image in alcove status', () => {
  const data = dataDirectoryAt(mkdtempSync(join(tmpdir(), 'alcove-images-')))
  const programs = join(data.runner, 'images/default/rootfs/usr/local/bin')
  before(() => {
    mkdirSync(programs, { recursive: true })
    writeFileSync(join(data.runner, 'images/default/image.json'), JSON.stringify({ description: {} }))
    const files = new RenewalFiles(data.runner)
    files.open()
    files.write({ madeAt: '2026-01-02T03:04:05Z' })
  })
  after(() => rmSync(data.path, { recursive: true, force: true }))

  test('if the default image has no uv, `alcove status` shows the command that renews the image', () => {
    const command = `/alcove images renew --data ${data.path}`
    const line = describeDefaultImage(data) ?? ''
    assert.match(line, /^of 2026-01-02, has no uv, because PyPI could not be reached; to try again: \//)
    assert.equal(line.slice(-command.length), command)
  })

  test('if the default image is complete, `alcove status` shows only the day on which the image was made', () => {
    writeFileSync(join(programs, 'uv'), '')
    assert.equal(describeDefaultImage(data), 'of 2026-01-02')
  })
})
