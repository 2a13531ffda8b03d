// Unpacks archives as hostile and as ordinary sandboxes would send them. After each archive, checks that nothing outside of the
// target directory has changed.
import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, beforeEach, suite, test } from 'node:test'
import { Failure } from '../failure.ts'
import { pack } from './pack.ts'
import { BadTar, blockBytes, type Header, type Kind, paddingAfter, writeHeader } from './tar-header.ts'
import { readTar } from './tar-reader.ts'
import { partsOf, staysBelow, unpackFile, unpackInto } from './unpack.ts'

type Wanted = { name: string | Buffer; kind?: Exclude<Kind, 'other'>; text?: string; link?: string; mode?: number }

const entry = ({ name, kind = 'file', text = '', link = '', mode = 0o644 }: Wanted): Buffer => {
  const size = Buffer.byteLength(text)
  const header: Header & { kind: Exclude<Kind, 'other'> } = {
    ...{ name: Buffer.from(name), kind, size, mode, mtime: 1_000_000, linkName: Buffer.from(link) },
  }
  return Buffer.concat([writeHeader(header), Buffer.from(text), paddingAfter(size)])
}

const archive = (...entries: Wanted[]): Buffer => Buffer.concat([...entries.map(entry), Buffer.alloc(2 * blockBytes)])

/** Returns the archive in pieces of a length that does not divide a block, so that blocks are split over two pieces. */
const inPieces = (data: Buffer) =>
  Readable.from(
    Array.from({ length: Math.ceil(data.length / 333) }, (_, at) => data.subarray(at * 333, at * 333 + 333)),
  )

suite('unpacking an archive of a sandbox', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-unpack-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))
  let root: string
  let outside: string
  let troubles: string[]
  let count = 0
  beforeEach(() => {
    count += 1
    root = join(scratch, String(count), 'target')
    outside = join(scratch, String(count), 'outside')
    mkdirSync(outside, { recursive: true })
    writeFileSync(join(outside, 'precious'), 'mine')
    troubles = []
  })
  const parts = { onBytes: () => {}, onTrouble: (name: string, why: string) => void troubles.push(`${name} ${why}`) }
  const unpack = (data: Buffer) => unpackInto(root, inPieces(data), parts)
  const unharmed = () => {
    assert.deepEqual(readdirSync(join(root, '..')).sort(), ['outside', 'target'])
    assert.deepEqual(readdirSync(outside), ['precious'])
    assert.equal(readFileSync(join(outside, 'precious'), 'utf8'), 'mine')
  }

  test('unpacking writes files, directories, links and odd names as they were packed', async () => {
    const long = 'n'.repeat(200)
    const names = ['a', 'odd\nname', '-rf', ' ü ☃ ', long]
    await unpack(
      archive(
        { name: './', kind: 'directory', mode: 0o755 },
        ...names.map((name) => ({ name: `./${name}`, text: name })),
        { name: 'sub/', kind: 'directory', mode: 0o500 },
        { name: 'sub/deep/run', text: 'x', mode: 0o755 },
        { name: 'sub/link', kind: 'symlink', link: '../a' },
        { name: 'hard', kind: 'link', link: './a' },
      ),
    )
    assert.deepEqual(readdirSync(root).sort(), [...names, 'hard', 'sub'].sort())
    for (const name of names) assert.equal(readFileSync(join(root, name), 'utf8'), name)
    assert.equal(readFileSync(join(root, 'hard'), 'utf8'), 'a')
    assert.equal(readlinkSync(join(root, 'sub/link')), '../a')
    assert.equal(statSync(join(root, 'sub/deep/run')).mode & 0o777, 0o755)
    assert.equal(statSync(join(root, 'a')).mtimeMs, 1_000_000_000)
    assert.deepEqual(troubles, [])
    unharmed()
  })

  test('unpacking stops at an entry whose name leads outside of the target, and writes nothing outside', async () => {
    for (const name of ['../evil', 'a/../../evil', '/evil', join(outside, 'evil'), '..']) {
      for (const kind of ['file', 'directory', 'symlink'] as const)
        await assert.rejects(unpack(archive({ name, kind, link: 'x' })), /outside the target directory/)
      await assert.rejects(
        unpack(archive({ name: 'x', text: 'x' }, { name: 'y', kind: 'link', link: name })),
        /outside the target directory/,
      )
    }
    unharmed()
  })

  test('unpacking writes nothing through a link of the archive, whatever the order of the entries', async () => {
    const through = [
      { name: 'door', kind: 'symlink', link: '../outside' },
      { name: 'door/evil', text: 'evil' },
    ] as const
    await unpack(archive(...through))
    assert.equal(readFileSync(join(root, 'door/evil'), 'utf8'), 'evil')
    await unpack(archive({ name: 'in', kind: 'symlink', link: 'door' }, { name: 'in/evil', text: 'evil' }))
    unharmed()
  })

  test('unpacking writes nothing through a link that the target directory already contained', async () => {
    mkdirSync(root)
    symlinkSync('../outside', join(root, 'door'))
    symlinkSync('../outside/precious', join(root, 'file'))
    await assert.rejects(
      unpack(archive({ name: 'door/precious', text: 'evil' })),
      /exists already and is not a directory/,
    )
    await assert.rejects(unpack(archive({ name: 'door', kind: 'directory' })), /exists already and is not a directory/)
    await unpack(archive({ name: 'file', text: 'new' }))
    assert.ok(lstatSync(join(root, 'file')).isFile())
    unharmed()
  })

  test('unpacking makes no symbolic link that leads, or could lead, out of the unpacked directory', async () => {
    const links = ['/etc/passwd', '..', '../../outside', 'a/../../outside', 'deep/../..', 'x/..']
    await unpack(archive(...links.map((link, at) => ({ name: `d/l${at}`, kind: 'symlink', link }) as const)))
    assert.deepEqual(existsSync(join(root, 'd')) ? readdirSync(join(root, 'd')) : [], ['l1'])
    assert.equal(troubles.length, links.length - 1)
    unharmed()
  })

  test('unpacking removes set-user-id bits, and does not change the permissions of an existing directory', async () => {
    mkdirSync(join(root, 'kept'), { recursive: true, mode: 0o755 })
    await unpack(
      archive(
        { name: './', kind: 'directory', mode: 0 },
        { name: 'kept/', kind: 'directory', mode: 0o777 },
        { name: 'new/', kind: 'directory', mode: 0 },
        { name: 'run', mode: 0o6755, text: 'x' },
      ),
    )
    assert.equal(statSync(join(root, 'run')).mode & 0o7777, 0o755)
    assert.equal(statSync(root).mode & 0o7777, 0o755)
    assert.equal(statSync(join(root, 'kept')).mode & 0o7777, 0o755)
    assert.equal(statSync(join(root, 'new')).mode & 0o7777, 0o700)
  })

  test('unpacking leaves out devices and pipes, and continues with the entries after them', async () => {
    const pipe = entry({ name: 'pipe' })
    pipe.write('6', 156, 'latin1')
    pipe.fill(' ', 148, 156)
    const sum = pipe.reduce((sum, byte) => sum + byte, 0)
    pipe.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    await unpack(Buffer.concat([pipe, archive({ name: 'after', text: 'x' })]))
    assert.deepEqual([readdirSync(root), troubles.length], [['after'], 1])
  })

  test('unpacking a broken, cut or missing tar archive throws an error, and leaves no incomplete file', async () => {
    const whole = archive({ name: 'a', text: 'x'.repeat(1000) })
    await assert.rejects(unpack(whole.subarray(0, 900)), BadTar)
    await assert.rejects(unpack(Buffer.from('no archive, but some words'.repeat(100))), BadTar)
    await assert.rejects(unpack(Buffer.alloc(0)), BadTar)
    const endless = entry({ name: 'x' })
    endless.write('L', 156, 'latin1')
    await assert.rejects(unpack(endless), BadTar)
    assert.deepEqual(existsSync(root) ? readdirSync(root) : [], [])
  })

  test('`unpackFile` accepts exactly one file in the archive, whatever its name', async () => {
    mkdirSync(root)
    const one = (data: Buffer) => unpackFile(root, 'mine', inPieces(data), parts)
    await one(archive({ name: '/etc/shadow', text: 'x' }))
    assert.deepEqual([readdirSync(root), readFileSync(join(root, 'mine'), 'utf8')], [['mine'], 'x'])
    await assert.rejects(one(archive({ name: 'a', kind: 'symlink', link: '/etc' })), Failure)
    await assert.rejects(one(archive({ name: 'a', text: '1' }, { name: 'b', text: '2' })), Failure)
    await assert.rejects(one(archive()), Failure)
    unharmed()
  })

  test('`staysBelow` refuses link targets that leave the unpacked directory or have `..` after a name', () => {
    const below = (name: string, target: string) => staysBelow(partsOf(Buffer.from(name)), Buffer.from(target))
    for (const [name, target] of [
      ['l', 'a'],
      ['d/l', '../a'],
      ['d/e/l', '../../a/b'],
      ['l', './a/./b'],
    ] as const)
      assert.ok(below(name, target), `${name} → ${target}`)
    for (const [name, target] of [
      ['l', '..'],
      ['l', '/a'],
      ['l', ''],
      ['d/l', '../..'],
      ['d/l', 'a/..'],
      ['d/l', './a/../b'],
    ] as const)
      assert.ok(!below(name, target), `${name} → ${target}`)
  })

  test('unpacking restores what `pack` has packed, even names that are not text, and files of any length', async () => {
    const source = join(scratch, String(count), 'source')
    mkdirSync(join(source, 'sub'), { recursive: true })
    const sizes = [0, 1, 511, 512, 513, 200_000]
    for (const size of sizes) writeFileSync(join(source, `f${size}`), Buffer.alloc(size, 7))
    const odd = Buffer.concat([Buffer.from(`${source}/sub/`), Buffer.from([0xff, 0xfe])])
    if (process.platform === 'linux') writeFileSync(odd, 'odd')
    symlinkSync('f1', join(source, 'link'))
    const packed = pack(source, 'copy', { onBytes: () => {}, onTrouble: () => {} })
    const seen: string[] = []
    for await (const { name, kind, size, contents } of readTar(packed)) {
      let read = 0
      for await (const piece of contents) read += piece.length
      assert.equal(read, size)
      seen.push(`${kind} ${name.toString('latin1')} ${size}`)
    }
    assert.deepEqual(
      seen.sort(),
      [
        'directory copy/ 0',
        'directory copy/sub/ 0',
        'symlink copy/link 0',
        ...(process.platform === 'linux' ? ['file copy/sub/\u00ff\u00fe 3'] : []),
        ...sizes.map((size) => `file copy/f${size} ${size}`),
      ].sort(),
    )
    assert.equal(statSync(join(source, 'f513')).size, 513)
  })
})
