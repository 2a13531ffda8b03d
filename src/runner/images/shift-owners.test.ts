import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { shiftOwners } from './shift-owners.ts'

const shift = 165_536
const longName = `${'deep/'.repeat(30)}${'n'.repeat(120)}`

const shifted = async (archive: Buffer, chunkSize: number) => {
  const chunks = Array.from({ length: Math.ceil(archive.length / chunkSize) }, (_, index) =>
    archive.subarray(index * chunkSize, (index + 1) * chunkSize),
  )
  return Buffer.concat(await Array.fromAsync<Buffer>(Readable.from(chunks).pipe(shiftOwners(shift))))
}

suite('shifting the owners in a tar stream', { skip: needsRoot }, () => {
  let directory: string
  let archive: Buffer

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-shift-'))
    const root = join(directory, 'root')
    await mkdir(join(root, longName, '..'), { recursive: true })
    await writeFile(join(root, longName), 'long')
    await writeFile(join(root, 'program'), 'x'.repeat(5000))
    const script = [
      'chown 1000:42 program; chmod 4755 program',
      'ln program twin; ln -s /etc/passwd link; chown -h 7:65534 link',
      'mknod null c 1 3; mkfifo pipe',
      'setfattr -n user.colour -v blue program 2>/dev/null || true',
      'tar --create --format=pax --xattrs --xattrs-include="*" --file ../plain.tar .',
    ].join('; ')
    execFileSync('sh', ['-ec', script], { cwd: root })
    archive = await readFile(join(directory, 'plain.tar'))
  })
  after(() => rm(directory, { recursive: true, force: true }))

  test('shifting the owners in a tar stream raises each user and group id, and leaves out only devices', async () => {
    const target = join(directory, 'unpacked')
    await mkdir(target)
    execFileSync('tar', ['-x', '--numeric-owner', '-p', '-C', target], { input: await shifted(archive, 65_536) })

    const program = await lstat(join(target, 'program'))
    assert.deepEqual([program.uid, program.gid], [shift + 1000, shift + 42])
    assert.equal(program.mode & 0o7777, 0o4755)
    assert.equal(program.size, 5000)
    assert.equal((await lstat(join(target, 'twin'))).ino, program.ino)
    const link = await lstat(join(target, 'link'))
    assert.deepEqual([link.uid, link.gid], [shift + 7, shift + 65_534])
    assert.equal(await readlink(join(target, 'link')), '/etc/passwd')
    assert.equal(await readFile(join(target, longName), 'utf8'), 'long')
    assert.ok((await lstat(join(target, 'pipe'))).isFIFO())
    await assert.rejects(lstat(join(target, 'null')), { code: 'ENOENT' })
  })

  test('shifting the owners in a tar stream has the same result wherever the stream is cut into chunks', async () => {
    const whole = await shifted(archive, archive.length)
    for (const size of [97, 511, 512, 513, 4096])
      assert.ok(whole.equals(await shifted(archive, size)), `cut at ${size}`)
  })

  test('shifting the owners in a tar stream fails if the stream ends early', async () => {
    const ends = [0, 100, 512, 700, archive.length / 2]
    for (const end of ends) await assert.rejects(shifted(archive.subarray(0, end), 512), /too early/)
  })

  test('shifting the owners fails if the input is not a tar stream', async () => {
    await assert.rejects(shifted(Buffer.alloc(2048, 'z'), 512), /octal/)
  })
})
