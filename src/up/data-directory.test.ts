import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { instanceOf } from '#src/kit/instance.ts'
import {
  findAdminKey,
  newApiKey,
  newEncryptionKey,
  prepareDataDirectory,
  readOlderEncryptionKeys,
  readSecret,
} from './data-directory.ts'

const needsRoot = process.getuid?.() === 0 ? false : 'chown needs root'

suite('the data directory', { skip: needsRoot }, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-data-'))
  const data = prepareDataDirectory(join(scratch, 'with space', 'data'))
  after(() => {
    rmSync(scratch, { recursive: true, force: true })
    rmSync(data.runtime, { recursive: true, force: true })
  })

  test('has one instance name however its path is written', () => {
    const link = join(scratch, 'link')
    symlinkSync(data.path, link)
    assert.equal(instanceOf(link), data.instance)
    assert.match(data.instance, /^[0-9a-f]{6}$/)
  })

  test('shows secrets and logs to nobody else, and lets unprivileged programs pass through', () => {
    const mode = (path: string) => statSync(path).mode & 0o777
    assert.deepEqual([data.path, data.secrets, data.log].map(mode), [0o711, 0o700, 0o700])
  })

  test('makes a secret once, keeps it in a 0600 file, and leaves no draft behind', () => {
    assert.equal(findAdminKey(data), undefined)
    const first = readSecret(data, 'admin.key', newApiKey)
    const second = readSecret(data, 'admin.key', () => assert.fail('made a second key'))
    assert.deepEqual([first.isNew, second.isNew], [true, false])
    assert.equal(second.value, first.value)
    assert.equal(findAdminKey(data), first.value)
    assert.match(first.value, /^dtn_[0-9a-f]{64}$/)
    assert.deepEqual(readdirSync(data.secrets), ['admin.key'])
    assert.equal(statSync(join(data.secrets, 'admin.key')).mode & 0o777, 0o600)
  })

  test('an encryption key that is moved aside is an older key from then on, and a new one takes its place', () => {
    const other = prepareDataDirectory(join(scratch, 'replaced'))
    const first = readSecret(other, 'encryption.key', newEncryptionKey).value
    assert.equal(Buffer.from(first, 'base64').length, 32)
    assert.equal(readOlderEncryptionKeys(other), '')
    renameSync(join(other.secrets, 'encryption.key'), join(other.secrets, 'encryption.older.keys'))
    const second = readSecret(other, 'encryption.key', newEncryptionKey)
    assert.ok(second.isNew && second.value !== first)
    assert.equal(readOlderEncryptionKeys(other), first)
    rmSync(other.runtime, { recursive: true, force: true })
  })

  test('may be prepared again without losing anything', () => {
    const key = readSecret(data, 'admin.key', newApiKey).value
    assert.equal(findAdminKey(prepareDataDirectory(data.path)), key)
  })
})
