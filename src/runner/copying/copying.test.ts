// Tests COPY and ADD of files from ordinary and hostile tar files, which callers have packed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { EventLoopTurns } from '#src/kit/yield.ts'
import type { Files } from '#src/toolbox/agent/agent.ts'
import type { ContextStore } from '../contexts/store.ts'
import { type TarEntry as Entry, tarOf } from '../images/testing/oci-image.ts'
import { archiveKind, unpackedFrom } from './archives.ts'
import { ContextSource } from './context-source.ts'
import { copyFiles } from './copier.ts'
import { type CopyRequest, select } from './selection.ts'
import { readTar, type TarEntry } from './tar-reader.ts'
import { Tree } from './tree.ts'

const inPieces = async function* (bytes: Buffer, size = 700) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const readAll = async (tar: Buffer, size?: number) => {
  const found: (TarEntry & { contents: Buffer })[] = []
  for await (const { entry, contents } of readTar(inPieces(tar, size), unhurried())) {
    const parts: Buffer[] = []
    for await (const part of contents) parts.push(part)
    found.push({ ...entry, contents: Buffer.concat(parts) })
  }
  return found
}

const treeOf = async (...tars: Buffer[]) => {
  const tree = new Tree()
  for (const [tar, bytes] of tars.entries()) {
    let file = 0
    for await (const { entry } of readTar(inPieces(bytes), unhurried())) tree.add(entry, { tar, file: file++ })
  }
  return tree
}

const unhurried = () => new EventLoopTurns(new AbortController().signal)

const file = (path: string, content = path): Entry => ({ path, content })

/** Makes an extended header, which describes the next entry (x, L, K) or all entries after it (g). */
const extension = (flag: string, content = ''): Buffer => {
  const blocks = tarOf([file('extension', content)]).subarray(0, -1024)
  const sum = (block: Buffer) => block.reduce((total, byte) => total + byte, 0)
  blocks.write(flag, 156)
  blocks.write('        ', 148)
  blocks.write(`${sum(blocks.subarray(0, 512)).toString(8).padStart(6, '0')}\0 `, 148)
  return blocks
}
/** Makes a field of a pax header. The length at the beginning of the field must have two digits. */
const pax = (text: string): string => `${text.length + 4} ${text}\n`
const failing = (failure: string) => ({ name: 'ImageFailed', failure })

suite('reading a tar', () => {
  test('`readTar` reads what GNU tar packs in its formats gnu, pax and ustar, with long names and links', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-tar-'))
    try {
      const long = `${'d'.repeat(120)}/${'e'.repeat(120)}`
      mkdirSync(join(directory, long), { recursive: true })
      writeFileSync(join(directory, long, 'f'.repeat(200)), 'deep')
      writeFileSync(join(directory, 'grüße'), 'x'.repeat(1025), { mode: 0o640 })
      writeFileSync(join(directory, 'empty'), '')
      linkSync(join(directory, 'grüße'), join(directory, 'hard'))
      symlinkSync('t'.repeat(150), join(directory, 'link'))
      for (const format of ['gnu', 'pax', 'ustar']) {
        const names = format === 'ustar' ? ['empty', 'grüße', 'hard'] : ['.']
        const argv = ['--create', '--sort=name', `--format=${format}`, '--mtime=@1234567', '-C', directory, ...names]
        const entries = await readAll(execFileSync('tar', argv, { maxBuffer: 2 ** 24 }), format === 'gnu' ? 1 : 10_000)
        const named = (name: string) => {
          const bytes = Buffer.from(name).toString('latin1')
          return entries.find(({ path }) => path.replace(/^\.\//, '') === bytes)
        }
        const large = named('grüße')
        assert.deepEqual([large?.mode, large?.size, large?.modifiedSeconds], [0o640, 1025, 1_234_567])
        assert.equal(large?.contents.toString(), 'x'.repeat(1025))
        assert.deepEqual([named('hard')?.type, named('empty')?.size], ['hard link', 0])
        if (format === 'ustar') continue
        assert.equal(named(`${long}/${'f'.repeat(200)}`)?.contents.toString(), 'deep')
        assert.equal(named('link')?.target, 't'.repeat(150))
      }
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  test('`readTar` throws `ImageFailed` for a tar that is cut off, damaged or contains devices', async () => {
    const tar = tarOf([file('a', 'a'.repeat(2000)), { path: 'd', type: '5' }])
    for (const [bytes, message] of [
      [tar.subarray(0, 300), /cut off/],
      [tar.subarray(0, 1500), /cut off/],
      [Buffer.from(tar).fill('x', 3, 4), /damaged/],
      [Buffer.alloc(2000, 'not a tar'), /cannot be unpacked/],
      [tarOf([{ path: 'dev', type: '3' }]), /"dev" is a device/],
      [tarOf([{ path: 'dev', type: '4' }]), /is a device/],
    ] as const)
      await assert.rejects(readAll(bytes), message)
    assert.deepEqual(await readAll(Buffer.alloc(0)), [])
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(tar.length - 1), fc.nat(255)), { maxLength: 6 }), async (changes) => {
        const changed = Buffer.from(tar)
        for (const [at, byte] of changes) changed[at] = byte
        await readAll(changed).catch((error: Error) => assert.equal(error.name, 'ImageFailed'))
      }),
      { numRuns: 200 },
    )
  })
})

suite('extension headers (pax) in a tar', () => {
  const entries = (...blocks: Buffer[]) => readAll(Buffer.concat([...blocks, tarOf([file('short', 'content')])]))

  test('a pax header describes the tar entry after it; unknown fields are ignored, sparse files are refused', async () => {
    const first = extension('x', pax('path=a name') + pax('mtime=12.5') + pax('comment=none') + pax('path=another'))
    const [entry] = await entries(extension('g', pax('path=of all')), first, extension('x', pax('uid=70000')))
    assert.deepEqual([entry?.path, entry?.modifiedSeconds, entry?.uid], ['another', 12, 70_000])
    assert.equal(entry?.contents.toString(), 'content')
    const [, after] = await entries(first, tarOf([file('other')]).subarray(0, -1024))
    assert.deepEqual([after?.path, after?.modifiedSeconds, after?.uid], ['short', 0, 0])
    await assert.rejects(entries(extension('x', pax('GNU.sparse.major=1'))), /is a sparse file/)
    await assert.rejects(entries(extension('x', 'x y\n')), /header cannot be read/)
  })

  test('a pax header takes one short step per field, and is refused at a field without a length', async () => {
    let steps = 0
    const counted = { next: async () => assert.ok(++steps <= 1002, 'it is read without end') }
    const header = extension('x', `${pax('comment=none').repeat(1000)}none`)
    const reading = readTar(inPieces(header), counted as unknown as EventLoopTurns).next()
    await assert.rejects(reading, { ...failing('corrupted'), message: /header cannot be read/ })
    assert.equal(steps, 1002)
  })
})

suite('the files that were sent with a definition', () => {
  test('a tar entry with `..` in its path is refused; an absolute path begins at the root of the files sent', async () => {
    for (const path of ['../x', 'a/../../x', 'a/..', '/..', 'a/b/..'])
      await assert.rejects(treeOf(tarOf([file(path)])), failing('corrupted'), path)
    await assert.rejects(treeOf(tarOf([{ path: 'l', type: '1', target: '../../etc/passwd' }])), failing('corrupted'))
    await assert.rejects(treeOf(tarOf([{ path: 'l', type: '1', target: 'none' }])), failing('corrupted'))
    // These few entries have such long paths that very many directories would be created.
    const deep = new Tree()
    const entry = { type: 'file', target: '', mode: 0, uid: 0, gid: 0, modifiedSeconds: 0, size: 0 } as const
    assert.throws(() => {
      for (let at = 0; at < 200; at++) deep.add({ ...entry, path: `${at}${'/d'.repeat(1700)}` }, { tar: 0, file: at })
    }, failing('too-many-files'))
    const tree = await treeOf(tarOf([file('/etc/shadow'), file('./b')]))
    assert.deepEqual([tree.find('/etc/shadow')?.kind, tree.find('b')?.kind], ['file', 'file'])
  })

  test('COPY follows symbolic links in the sent files, but no link leads out of these files', async () => {
    const link = (path: string, target: string): Entry => ({ path, type: '2', target })
    const entries = [file('d/f'), link('to-f', 'd/f'), link('to-d', '/d'), link('out', '../../../d'), link('a', 'b')]
    const tree = await treeOf(tarOf([...entries, link('b', 'a'), link('gone', '/etc/passwd'), link('d/up', '..')]))
    for (const path of ['d/f', 'to-f', 'to-d/f', 'out/f', 'd/up/d/f', 'd/../d/./f', '../../d/f'])
      assert.equal(tree.find(path)?.kind, 'file', path)
    for (const path of ['a', 'gone', 'd/f/x', 'd/f/..', 'none', 'to-f/']) {
      assert.equal(path === 'to-f/' ? 'file' : tree.find(path)?.kind, path === 'to-f/' ? 'file' : undefined, path)
    }
    // If an entry's path leads through a link, the link is replaced by a directory and is not followed.
    const behind = await treeOf(tarOf([link('l', '/etc'), file('l/passwd')]))
    assert.deepEqual([behind.find('l')?.kind, behind.find('etc')], ['directory', undefined])
  })

  test('`*`, `?` and `[…]` in a COPY pattern match within one name, never across a slash', async () => {
    const tree = await treeOf(tarOf(['a.txt', 'b.txt', 'c.md', 'd/a.txt', '[x]', 'e-f'].map((path) => file(path))))
    for (const [pattern, found] of [
      ['*.txt', ['/a.txt', '/b.txt']],
      ['?.??', ['/c.md']],
      ['*/a*', ['/d/a.txt']],
      ['[a-b].txt', ['/a.txt', '/b.txt']],
      ['[^a].txt', ['/b.txt']],
      ['\\[x\\]', ['/[x]']],
      ['e[-x]f', ['/e-f']],
      ['*.none', []],
      ['**.t?t', ['/a.txt', '/b.txt']],
      ['a*.tx', []],
      ['.', ['']],
    ] as const)
      assert.deepEqual(await tree.match(pattern, unhurried()), found, pattern)
    for (const bad of ['[', '[a', 'a\\', '[]', '[z-a]']) await assert.rejects(tree.match(bad, unhurried()), /pattern/)
  })
})

suite('the files that COPY makes', () => {
  const made = async (wanted: Partial<CopyRequest>, isDirectory = false) => {
    const tars = [
      tarOf([file('one.txt'), file('app/x'), { path: 'app/x2', type: '1', target: 'app/x' }]),
      tarOf([
        { path: 'app', type: '5', mode: 0o700 },
        file('app/y', 'why'),
        { path: 'app/l', type: '2', target: '/x' },
      ]),
    ]
    const all = { sources: [], destination: '/to', mode: undefined, unpacks: false, ...wanted }
    const selection = await select(await treeOf(...tars), all, isDirectory, new AbortController().signal)
    const files = selection.files.all().map(({ path }) => path)
    const others = selection.made.map((each) =>
      each.type === 'link' ? `${each.path}>${each.target}` : `${each.path}/`,
    )
    return [...others, ...files].sort()
  }

  test('COPY of a file renames it or puts it into a directory; COPY of a directory copies its contents', async () => {
    assert.deepEqual(await made({ sources: ['one.txt'] }), ['/to'])
    assert.deepEqual(await made({ sources: ['one.txt'], destination: '/to/' }), ['/to/one.txt'])
    assert.deepEqual(await made({ sources: ['one.txt'] }, true), ['/to/one.txt'])
    assert.deepEqual(await made({ sources: ['one.txt'], destination: '/' }, true), ['/one.txt'])
    const whole = ['/to/', '/to/l>/x', '/to/x', '/to/x2', '/to/y']
    for (const source of ['app', '/app/', './app', 'app/.', '../app', 'ap?'])
      assert.deepEqual(await made({ sources: [source] }), whole, source)
    assert.deepEqual(await made({ sources: ['app/[xy]'], destination: '/' }, true), ['/x', '/y'])
    assert.deepEqual(await made({ sources: ['one.txt', 'app/y'], destination: '/to/' }), ['/to/one.txt', '/to/y'])
    for (const source of ['none', '*.none', 'one.txt/x'])
      await assert.rejects(made({ sources: [source] }), { message: `there is no ${source}` })
  })
})

suite('COPY of input that would take unlimited time', () => {
  const many = (name: (at: number) => string) => {
    const tree = new Tree()
    const entry = { type: 'file', target: '', mode: 0, uid: 0, gid: 0, modifiedSeconds: 0, size: 0 } as const
    for (let at = 0; at < 150_000; at++) tree.add({ ...entry, path: name(at) }, { tar: 0, file: at })
    return tree
  }

  test('while a slow COPY pattern is matched, the runner can do other work; an abort ends the matching', async () => {
    const [tree, ending] = [many((at) => `${'a'.repeat(120)}${at}`), new AbortController()]
    let turns = 0
    const timer = setInterval(() => {
      if (++turns === 5) ending.abort(new Error('told to end'))
    })
    const wanted = { sources: [`*${'a'.repeat(60)}b`], destination: '/to/', mode: undefined, unpacks: false }
    await assert.rejects(select(tree, wanted, true, ending.signal), { message: 'told to end' })
    clearInterval(timer)
  })

  test('while COPY applies `--exclude` to many files, the runner can do other work; an abort ends COPY', async () => {
    const [tree, ending] = [new Tree(), new AbortController()]
    const entry = { type: 'file', target: '', mode: 0, uid: 0, gid: 0, modifiedSeconds: 0, size: 0 } as const
    for (let at = 0; at < 1000; at++) tree.add({ ...entry, path: `${'a'.repeat(100)}${at}` }, { tar: 0, file: at })
    let turns = 0
    const timer = setInterval(() => {
      if (++turns === 5) ending.abort(new Error('told to end'))
    })
    const excludes = Array(30).fill(`*${'a'.repeat(50)}b`)
    const wanted = { sources: ['*'], destination: '/to/', mode: undefined, unpacks: false, excludes }
    const selecting = select(tree, wanted, true, ending.signal)
    await assert.rejects(selecting, { message: 'told to end' }).finally(() => clearInterval(timer))
  })

  test('a tar with thousands of empty extension headers is refused', async () => {
    for (const flag of ['x', 'g', 'L', 'K']) {
      let given = 0
      const headers = async function* () {
        for (const block = extension(flag); given < 5000; given++) yield block
      }
      const reading = async () => {
        for await (const _ of readTar(headers(), unhurried())) assert.fail('there is no entry')
      }
      await assert.rejects(reading(), { ...failing('corrupted'), message: /a header is too long/ }, flag)
      assert.equal(given, 2048, flag)
    }
  })

  test('while many tar headers are read, the runner can do other work; an abort ends the reading', async () => {
    const entry = tarOf([file('x')]).subarray(0, -1024)
    const lines = extension('x', pax('comment=none').repeat(50_000))
    for (const pieces of [
      [...Array(500).fill(extension('g')), ...Array(500).fill(extension('x')), entry],
      [lines, entry],
    ]) {
      const ending = new AbortController()
      let turns = 0
      const timer = setInterval(() => {
        if (++turns === 5) ending.abort(new Error('told to end'))
      })
      const again = async function* () {
        for (let times = 0; times < 100; times++) yield* pieces
      }
      const reading = async () => {
        for await (const _ of readTar(again(), new EventLoopTurns(ending.signal)));
      }
      await assert.rejects(reading(), { message: 'told to end' }).finally(() => clearInterval(timer))
    }
  })

  test('a COPY that selects the same files very many times fails with the error `too-many-files`', async () => {
    const wanted = { sources: Array(1000).fill('*'), destination: '/to/', mode: undefined, unpacks: false }
    const tree = many(String)
    await assert.rejects(select(tree, wanted, true, new AbortController().signal), failing('too-many-files'))
  })

  test('COPY by a pattern with many stars takes little time, and so does COPY of 50000 links to one file', async () => {
    const names = Array.from({ length: 300 }, (_, at) => file(`${'a'.repeat(90)}${at}`))
    const tree = await treeOf(tarOf(names))
    assert.deepEqual(await tree.match(`${'*a'.repeat(60)}*b`, unhurried()), [])
    const links = new Tree()
    const entry = { type: 'file', target: '', mode: 0, uid: 0, gid: 0, modifiedSeconds: 0, size: 1, path: 'x' } as const
    links.add(entry, { tar: 0, file: 0 })
    for (let at = 0; at < 50_000; at++)
      links.add({ ...entry, type: 'hard link', path: `d/${at}`, target: 'x' }, { tar: 0, file: at })
    const wanted = { sources: ['d'], destination: '/to', mode: undefined, unpacks: false }
    const signal = new AbortController().signal
    assert.equal((await select(links, wanted, false, signal)).fileCount, 50_000)
    const again = { ...wanted, sources: Array(9).fill('d'), destination: '/to/' }
    await assert.rejects(select(links, again, false, signal), failing('too-many-files'))
  })
})

suite('the files that ADD unpacks', () => {
  const unpack = async (tar: Buffer, mostBytes = 1e6) => {
    const kind = archiveKind(tar)
    assert.ok(kind, 'not taken for an archive')
    const parts: Buffer[] = []
    for await (const part of unpackedFrom(inPieces(tar), kind, '/to/', mostBytes, unhurried())) parts.push(part)
    return Buffer.concat(parts).toString('latin1')
  }

  test('ADD recognizes archives by their first bytes, and refuses `..` in paths, zip bombs and damaged data', async () => {
    const tar = tarOf([{ path: 'd', type: '5' }, file('d/inside', 'contents')])
    const packed = ['bzip2', 'xz', 'zstd'].map((program) => execFileSync(program, ['-c'], { input: tar }))
    for (const archive of [tar, gzipSync(tar), ...packed])
      assert.match(await unpack(archive), /\/to\/d\/insidecontents/)
    assert.equal(archiveKind(Buffer.from('just text')), undefined)
    await assert.rejects(unpack(tarOf([file('../x')])), failing('corrupted'))
    await assert.rejects(unpack(gzipSync(tarOf([file('x', 'x'.repeat(2_000_000))]))), failing('too-large'))
    await assert.rejects(unpack(gzipSync(tar).subarray(0, 60)), failing('corrupted'))
    assert.match(await unpack(Buffer.concat([tar, Buffer.alloc(5000, 'x')])), /insidecontents/)
    await assert.rejects(unpack(Buffer.from('BZh91AY')), failing('corrupted'))
    const large = tarOf([file('x', 'x'.repeat(5_000_000))])
    for (const program of ['xz', 'zstd', 'bzip2']) {
      const bomb = execFileSync(program, ['-c'], { input: large })
      assert.ok(bomb.length < 10_000, program)
      await assert.rejects(unpack(bomb), failing('too-large'), program)
    }
    // The archive `greedy` has a dictionary that is larger than the memory limit of the program that decompresses it.
    const greedy = execFileSync('xz', ['-c', '--lzma2=dict=512MiB'], { input: tar })
    await assert.rejects(unpack(greedy), failing('corrupted'))
    const wide = execFileSync('zstd', ['-c', '--ultra', '--long=31', '-22'], { input: tar })
    await assert.rejects(unpack(wide), failing('corrupted'))
  })

  test('ADD unpacks an archive that its source path or pattern matches, but not archives in a directory', async () => {
    const inner = tarOf([file('inside')])
    const packed = { path: 'app/packed.tar', content: inner }
    const tar = tarOf([file('app/x'), packed, { path: 'empty', content: '' }])
    const added = (...sources: string[]) => recordsOf([tar], { sources, destination: '/to/', unpacks: true })
    assert.deepEqual(await added('app'), ['directory /to', 'file /to/x', 'file /to/packed.tar'])
    assert.deepEqual(await added('.'), [
      'directory /to',
      'directory /to/app',
      'file /to/app/x',
      'file /to/app/packed.tar',
      'file /to/empty',
    ])
    assert.deepEqual(await added('app/packed.tar'), ['file /to/inside'])
    assert.deepEqual(await added('app/*', 'empty'), ['file /to/x', 'file /to/inside', 'file /to/empty'])
    // From the source `app`, ADD copies the archive packed.tar unchanged. From the source `app/packed.tar`, ADD unpacks the file
    // `inside`.
    const both = ['directory /to', 'file /to/x', 'file /to/packed.tar', 'file /to/inside']
    assert.deepEqual(await added('app/packed.tar', 'app'), both)
    const copied = { sources: ['app/packed.tar'], destination: '/to/', unpacks: false }
    assert.deepEqual(await recordsOf([tar], copied), ['file /to/packed.tar'])
    // An archive must be recognized even if its first block arrives in two pieces.
    const early = { ...packed, path: 'p.tar' }
    assert.deepEqual(
      await recordsOf([tarOf([early])], { sources: ['p.tar'], destination: '/to/', unpacks: true }, 700),
      ['file /to/inside'],
    )
  })
})

suite('files that COPY --exclude names', () => {
  test('`--exclude` omits even a file that COPY names, but never a directory that COPY names', async () => {
    const tar = tarOf([file('a'), file('b'), { path: 'd', type: '5' }, file('d/c')])
    const asked = { sources: ['a', 'b', 'd'], destination: '/to/', unpacks: false, excludes: ['a', 'd'] }
    assert.deepEqual((await recordsOf([tar], asked)).sort(), ['directory /to', 'file /to/b', 'file /to/c'])
  })
})

/**
 * Returns the records that the agent gets when files of these tars are copied. `cutAt`: the tars arrive in pieces of this size.
 */
const recordsOf = async (
  tars: Buffer[],
  asked: { sources: string[]; destination: string; unpacks: boolean; excludes?: string[] },
  cutAt = 10_000,
) => {
  const hashes = tars.map((_, at) => String(at).repeat(32))
  const contexts = {
    find: async () => ({ chunks: [] }),
    read: (name: { hash: string }) => inPieces(tars[hashes.indexOf(name.hash)] as Buffer, cutAt),
  }
  const { signal } = new AbortController()
  const of = { organizationId: 'ours', hashes }
  const source = await ContextSource.open({ contexts: contexts as unknown as ContextStore, of, signal })
  const pieces: Uint8Array[] = []
  const files = {
    stat: () => Promise.reject(new Error('nothing is there')),
    unpack: async (records: AsyncIterable<Uint8Array>) => {
      for await (const piece of records) pieces.push(piece)
    },
  }
  const copy = { documents: [], urls: [], owner: '', group: '', excludes: [], keepsParents: false, ...asked }
  await copyFiles(copy, { source, files: files as unknown as Files, mostBytes: 1e6, signal })
  const all = Buffer.concat(pieces)
  const found: string[] = []
  for (let at = 0; at < all.length; ) {
    const [size, path, target] = [
      Number(all.readBigUInt64LE(at + 21)),
      all.readUInt32LE(at + 29),
      all.readUInt32LE(at + 33),
    ]
    found.push(
      `${['file', 'directory', 'link', 'hard link'][all[at] as number]} ${all.toString('latin1', at + 37, at + 37 + path)}`,
    )
    at += 37 + path + target + size
  }
  return found
}
