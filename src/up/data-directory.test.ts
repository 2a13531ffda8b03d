import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { instanceOf } from '#src/kit/instance.ts'
import { cutEverywhere } from '#test/power-cut/cut-everywhere.ts'
import { Complaint } from './complaint.ts'
import {
  findAdminKey,
  findDataDirectory,
  markOf,
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

  test('a data directory has the same instance name for every spelling of its path', () => {
    const link = join(scratch, 'link')
    symlinkSync(data.path, link)
    assert.equal(instanceOf(link), data.instance)
    assert.match(data.instance, /^[0-9a-f]{6}$/)
  })

  test('all users can enter a data directory, but only its owner can read its secrets and logs', () => {
    const mode = (path: string) => statSync(path).mode & 0o777
    assert.deepEqual([data.path, data.secrets, data.log].map(mode), [0o711, 0o700, 0o700])
  })

  test('a secret is created once, in a file with mode 0600, without leaving a temporary file', () => {
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

  test('a secret is on the disk before it is returned, so that a power failure cannot lose a used secret', () => {
    const at = (directory: string) => ({ ...data, secrets: join(directory, 'secrets') })
    const told: string[] = []
    return cutEverywhere(
      (directory, mark) => {
        mkdirSync(join(directory, 'secrets'))
        told.push(readSecret(at(directory), 'encryption.key', newEncryptionKey).value)
        mark()
      },
      (left) => {
        const path = join(left.directory, 'secrets/encryption.key')
        if (left.told > 0) assert.ok(existsSync(path), left.after)
        if (existsSync(path)) assert.equal(readFileSync(path, 'utf8'), `${told[0]}\n`, left.after)
      },
    )
  })

  test('an encryption key that is moved to encryption.older.keys is still read, and a new key is made', () => {
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

  test('preparing an existing data directory again deletes nothing in it', () => {
    const key = readSecret(data, 'admin.key', newApiKey).value
    assert.equal(findAdminKey(prepareDataDirectory(data.path)), key)
  })

  const nested = (name: string, ...names: string[]) => {
    const path = join(scratch, name)
    for (const each of names) mkdirSync(join(path, each), { recursive: true })
    return path
  }
  const forget = (path: string) => rmSync(prepareDataDirectory(path).runtime, { recursive: true, force: true })

  test('`up` refuses a data directory with files that are not Alcove’s, and leaves the directory unchanged', () => {
    const others = nested('others', 'run', 'secrets', 'precious')
    chmodSync(others, 0o1777)
    assert.throws(() => prepareDataDirectory(others), Complaint)
    assert.equal(statSync(others).mode & 0o7777, 0o1777)
    assert.deepEqual(readdirSync(others), ['precious', 'run', 'secrets'])
    assert.equal(findDataDirectory(others), undefined)
  })

  test('an empty directory, or one with only `lost+found` and `images`, is accepted as a data directory', () => {
    const disk = nested('disk', 'lost+found', 'images')
    assert.equal(findDataDirectory(disk), undefined)
    forget(disk)
    assert.equal(findDataDirectory(disk)?.path, disk)
  })

  test('a data directory of an interrupted first start, or of an older version, is recognized as Alcove’s', () => {
    const begun = nested('begun', '.')
    writeFileSync(markOf(begun), '')
    assert.equal(findDataDirectory(begun)?.path, begun)
    const older = nested('older', 'secrets', 'postgres', 'runner', 'log', 'run', 'of an operator')
    assert.equal(findDataDirectory(older), undefined)
    writeFileSync(join(older, 'run', 'up.lock'), '')
    assert.equal(findDataDirectory(older)?.path, older)
    forget(older)
    assert.ok(readdirSync(older).includes('alcove-data'))
  })

  const complains = (sentence: RegExp) => (error: unknown) => error instanceof Complaint && sentence.test(error.message)

  test('a directory of another user is refused as a data directory, and left unchanged', () => {
    for (const name of ['of nobody', 'marked']) {
      const theirs = nested(name, '.')
      if (name === 'marked') writeFileSync(markOf(theirs), '')
      chownSync(theirs, 65534, 65534)
      chmodSync(theirs, 0o755)
      const before = readdirSync(theirs)
      assert.throws(() => prepareDataDirectory(theirs), complains(/belongs to user 65534.* chown root '\//))
      assert.equal(statSync(theirs).mode & 0o7777, 0o755)
      assert.deepEqual(readdirSync(theirs), before)
    }
    const within = nested('within', 'runner')
    writeFileSync(markOf(within), '')
    chownSync(join(within, 'runner'), 65534, 65534)
    assert.throws(() => prepareDataDirectory(within), complains(/within\/runner belongs to user 65534/))
  })

  test('`up` refuses a data directory below a directory to which others may write and that is not sticky', () => {
    for (const [mode, gid] of [
      [0o777, 0],
      [0o775, 65534],
    ] as const) {
      const open = nested(`open ${gid}`, 'there')
      chownSync(open, 0, gid)
      chmodSync(open, mode)
      for (const name of ['there', 'new/data']) {
        const path = join(open, name)
        assert.throws(() => prepareDataDirectory(path), complains(/other users may write to \/.* chmod go-w '\//), path)
      }
      assert.deepEqual([readdirSync(open), readdirSync(join(open, 'there'))], [['there'], []])
      chmodSync(open, 0o1777)
      forget(join(open, 'new/data'))
    }
    const ofRootsGroup = nested('of the group of root', '.')
    chmodSync(ofRootsGroup, 0o775)
    forget(join(ofRootsGroup, 'data'))
  })

  test('on a read-only file system, preparing a data directory fails with EROFS', () => {
    const disk = nested('read-only', '.')
    const mount = (...options: string[]) => execFileSync('mount', [...options, disk])
    mount('-t', 'tmpfs', '-o', 'size=64k,mode=755', 'none')
    try {
      forget(join(disk, 'there'))
      mount('-o', 'remount,ro')
      for (const name of ['there', 'new', 'new/data'])
        assert.throws(() => prepareDataDirectory(join(disk, name)), { code: 'EROFS' }, name)
    } finally {
      execFileSync('umount', [disk])
    }
  })

  test('the path of a file is refused as a data directory', () => {
    const file = join(scratch, 'file')
    writeFileSync(file, '')
    assert.throws(() => prepareDataDirectory(file), /is not a directory/)
  })
})
