import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { Complaint } from './complaint.ts'
import { orDiskComplaint } from './disk-complaint.ts'
import { writeUpState } from './state-file.ts'

const complains = (sentence: RegExp) => (error: unknown) => error instanceof Complaint && sentence.test(error.message)

suite('an error of a full or read-only disk', () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-disk-'))
  after(() => rmSync(directory, { recursive: true, force: true }))

  test('the error of a full or read-only disk becomes one sentence, with the path and the cause', async () => {
    const path = join(directory, 'up.json')
    symlinkSync('/dev/full', `${path}.new`)
    const state = { pid: 1, startTime: '1', host: '127.0.0.1', port: 1, url: '', programs: [] }
    await assert.rejects(
      orDiskComplaint(directory, async () => writeUpState(path, state)),
      complains(/^cannot write to \/.*alcove-disk-.*: no space is left, or no inodes \(ENOSPC\)\. /),
    )
    const readOnly = Object.assign(new Error('EROFS'), { code: 'EROFS', path: '/mnt/disk/secrets' })
    await assert.rejects(
      orDiskComplaint(directory, () => Promise.reject(readOnly)),
      complains(/^cannot write to \/mnt\/disk\/secrets: its file system is read-only \(EROFS\)\. /),
    )
  })

  test('an error with a different cause than a full or read-only disk is passed on unchanged', async () => {
    const missing = async () => writeFileSync(join(directory, 'missing', 'file'), '')
    await assert.rejects(orDiskComplaint(directory, missing), { code: 'ENOENT' })
    assert.equal(await orDiskComplaint(directory, async () => 'done'), 'done')
  })
})
