import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { uidBase } from '../oci/ids.ts'
import { Blobs } from './blobs.ts'
import { inodesUsed } from './files.ts'
import { standardLimits } from './limits.ts'
import { cannotRun, file } from './testing/library-room.ts'
import { digestOf, type TarEntry, tarOf } from './testing/oci-image.ts'
import { type Layer, unpackLayers } from './unpack.ts'

const began = Math.floor(Date.now() / 1000)

/** Prints each file with all its attributes. A time that no layer sets is the time of unpacking, printed as `now`. */
const describe = `
import hashlib, json, os, stat, sys
root, began = sys.argv[1], float(sys.argv[2])
first, said = {}, []
for directory, below, names in os.walk(root):
  for path in sorted([directory] if directory == root else []) + [os.path.join(directory, name) for name in sorted(below + names)]:
    s = os.lstat(path)
    kind = stat.S_IFMT(s.st_mode)
    name = os.path.relpath(path, root)
    own = {
      'path': name, 'mode': oct(s.st_mode), 'uid': s.st_uid, 'gid': s.st_gid,
      'time': 'now' if s.st_mtime >= began else s.st_mtime_ns,
      'attributes': {key: os.getxattr(path, key, follow_symlinks=False).hex() for key in sorted(os.listxattr(path, follow_symlinks=False))},
    }
    if kind == stat.S_IFLNK: own['target'] = os.readlink(path)
    if kind == stat.S_IFREG:
      own['content'] = hashlib.sha256(open(path, 'rb').read()).hexdigest()
      own['links'] = s.st_nlink
      own['is'] = first.setdefault(s.st_ino, name)
    said.append(own)
print(json.dumps(sorted(said, key=lambda own: own['path'])))
`

const directory = (path: string, more: Partial<TarEntry> = {}): TarEntry => ({ path, type: '5', ...more })
const link = (path: string, target: string): TarEntry => ({ path, type: '2', target })
const twin = (path: string, target: string): TarEntry => ({ path, type: '1', target })
const whiteout = (path: string) => file(path.replace(/[^/]+$/, '.wh.$&'), '')
const opaque = (path: string) => file(`${path}/.wh..wh..opq`, '')

/** Value of a file's extended attribute `security.capability`, version 2, with one permitted capability. */
const mayBind = Buffer.from('0100000200040000000000000000000000000000', 'hex')
const rootAs = (more: Partial<TarEntry>) => directory('./', more)

/** Images to unpack. Each is a list of layers, and each layer is a list of entries. */
const images: Record<string, TarEntry[][]> = {
  'everything that a layer can do to the files of lower layers': [
    [
      rootAs({ mode: 0o1751, uid: 7, gid: 8, mtime: 1111, attributes: { 'user.of': Buffer.from([0, 255, 10]) } }),
      directory('d', { mode: 0o2770, uid: 3, gid: 4, mtime: 5 }),
      ...['d/kept', 'd/gone', 'd/replaced', 'opaque/old', 'whole/below/deep'].map((path) =>
        file(path, path, { mtime: 9 }),
      ),
      file('tool', 'x', { mode: 0o4755, uid: 5, attributes: { 'security.capability': mayBind } }),
      twin('tool-twin', 'tool'),
      file('was-file'),
      directory('was-directory', { mtime: 4 }),
      file('was-directory/inner'),
      directory('target', { mtime: 6 }),
      link('to-target', 'target'),
      link('out', '/etc'),
      link('up', '../../../../../../etc'),
      file('implicit/parent/file'),
    ],
    [
      whiteout('d/gone'),
      whiteout('d/was-never-there'),
      file('d/replaced', 'new', { mode: 0o600, uid: 1000 }),
      file('d/new', 'n', { mtime: 77 }),
      opaque('opaque'),
      file('opaque/new'),
      whiteout('whole'),
      twin('tool-of-layer-2', 'tool'),
      whiteout('tool'),
      directory('was-file', { mode: 0o700 }),
      file('was-file/inner'),
      file('was-directory', 'now a file'),
      file('to-target/through', 'through the link'),
      file('out/passwd-of-image', 'stays inside'),
      file('up/also', 'stays inside'),
    ],
    [
      directory('d', { mode: 0o555, uid: 9, gid: 9, mtime: 50, attributes: { 'user.a': Buffer.from('b') } }),
      file('whole/again', 'made anew'),
      twin('twin-of-layer-3', 'tool-of-layer-2'),
      file('tool-twin', 'written anew', { mtime: 3 }),
      directory('to-target'),
      whiteout('out'),
      { path: 'device', type: '3' },
      file('../outside', 'stays inside'),
      file('large-owner', '', { uid: 70_000, gid: 95_607 }),
      opaque('implicit'),
    ],
    [whiteout('d'), file('d/after', 'a', { mtime: 1 }), opaque('.'), file('last', 'l', { mtime: 2 })],
  ],
  'a root directory that only an upper layer describes': [
    [file('a')],
    [rootAs({ mode: 0o700, uid: 1, mtime: 99 }), file('b')],
    [file('c')],
  ],
  'a root directory that several layers describe': [
    [rootAs({ uid: 1, mtime: 10, attributes: { 'user.first': Buffer.from('1') } }), file('a')],
    [rootAs({ uid: 2, mtime: 0 }), file('b')],
    [file('c'), whiteout('a')],
  ],
  'layers without any file': [[], [file('a')], []],
}

suite('unpacking layers over the files of lower layers', { skip: cannotRun }, () => {
  let place: string
  const makePlace = async () => {
    place ??= await mkdtemp('/var/tmp/alcove-unpack-')
    return place
  }
  after(() => place && rm(place, { recursive: true, force: true }))

  const unpackInto = async (name: string, parts: readonly TarEntry[][][]) => {
    const at = join(await makePlace(), name)
    const [rootfs, blobs] = [join(at, 'rootfs'), new Blobs(join(at, 'blobs'))]
    await mkdir(rootfs, { recursive: true })
    await chown(rootfs, uidBase, uidBase)
    await blobs.open()
    const own = blobs.of('test')
    let presentBytes: number | undefined
    for (const [index, part] of parts.entries()) {
      const scratch = join(at, `scratch-${index}`)
      const from = join(scratch, 'from')
      await mkdir(from, { recursive: true })
      const layers: Layer[] = []
      for (const entries of part) {
        const tar = tarOf(entries)
        await writeFile(join(from, digestOf(tar).slice(7)), tar)
        await own.take(digestOf(tar), from)
        layers.push({ digest: digestOf(tar), size: tar.length, diffId: digestOf(tar) })
      }
      const filesMade = () => inodesUsed(rootfs)
      const bounds = { mostBytes: 1024 ** 3, limits: { ...standardLimits, keepFreeBytes: 0 }, onWritten: () => {} }
      const unpacked = await unpackLayers(own, { scratch, rootfs, layers, presentBytes, filesMade, ...bounds })
      presentBytes = unpacked.sizeBytes
    }
    const said = execFileSync('/usr/bin/python3', ['-c', describe, rootfs, String(began)], { maxBuffer: 1e8 })
    return JSON.parse(said.toString()) as { path: string }[]
  }

  for (const [what, layers] of Object.entries(images))
    test(`unpacking layers one by one gives the same files as unpacking all layers together: ${what}`, async () => {
      const key = String(Object.keys(images).indexOf(what))
      const whole = await unpackInto(`${key}-whole`, [layers])
      const oneByOne = await unpackInto(
        `${key}-each`,
        layers.map((layer) => [layer]),
      )
      assert.deepEqual(oneByOne, whole)
      assert.ok(whole.length > 1)
    })
})
