// Tests all file calls of the public SDK in a real sandbox, also with files larger than memory and on a full disk.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, suite, test } from 'node:test'
import type { Daytona, Sandbox } from '@daytona/sdk'
import { type Box, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

const MiB = 1024 * 1024

/** A program that watches the directory `seen`. It prints each inotify event, and the file's size at the time of the event. */
const watchProgram = `
import ctypes, os, struct
kinds = {0x100: "create", 0x8: "close_write", 0x40: "moved_from", 0x80: "moved_to", 0x200: "delete"}
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
libc.inotify_add_watch(watch, b"seen", sum(kinds))
print("watching", flush=True)
while True:
    events = os.read(watch, 65536)
    while events:
        _, mask, _, size = struct.unpack_from("iIII", events)
        name = events[16:16 + size].rstrip(b"\\0").decode()
        length = os.path.getsize("seen/" + name) if os.path.exists("seen/" + name) else "-"
        print(kinds[mask], length, name, flush=True)
        events = events[16 + size:]
`

suite('files', () => {
  let alcove: Platform
  before(async () => {
    alcove = await platform()
  })
  after(async () => {
    await alcove?.[Symbol.asyncDispose]()
  })

  /** Calls the file endpoints without the SDK, for bodies and answers that are not JSON. */
  const call = (box: Box, method: string, path: string, body?: RequestInit['body'], init: RequestInit = {}) =>
    fetch(`${box.record['toolboxProxyUrl']}/${box.id}/files${path}`, {
      method,
      headers: { authorization: `Bearer ${alcove.key}`, 'content-type': 'application/octet-stream' },
      ...(body === undefined ? {} : { body, duplex: 'half' }),
      ...init,
    } as RequestInit)

  /**
   * Counts unfinished uploads. Their files have no names yet, so the function counts open files without a name in all processes
   * except the agent.
   */
  const halfFiles = async (box: Box) =>
    (
      await box.try(
        `for each in /proc/[0-9]*; do [ $each = /proc/1 ] || ls -l $each/fd; done 2>/dev/null | grep -c '/#.*(deleted)$'`,
      )
    ).result.trim()

  suite('the SDK', () => {
    let daytona: Daytona
    let sandbox: Sandbox
    before(async () => {
      daytona = connectTo(alcove)
      sandbox = await daytona.create()
    })
    after(async () => {
      await sandbox?.delete()
      await daytona?.[Symbol.asyncDispose]()
    })

    test('the SDK uploads and downloads single files and lists of files, from memory and disk, with odd names', async () => {
      const local = mkdtempSync(join(tmpdir(), 'alcove-files-'))
      try {
        const bytes = Buffer.from(Array.from({ length: 500_000 }, (_, at) => (at * 31) % 256))
        writeFileSync(join(local, 'source'), bytes)
        await sandbox.fs.uploadFile(Buffer.from('hello'), 'new/hello.txt')
        assert.equal((await sandbox.fs.downloadFile('new/hello.txt')).toString(), 'hello')
        await sandbox.fs.uploadFile(join(local, 'source'), '/tmp/large')
        await sandbox.fs.downloadFile('/tmp/large', join(local, 'back'))
        assert.deepEqual(readFileSync(join(local, 'back')), bytes)

        const names = ['plain', 'zwei é 漢.txt', `quo"te's\\(*)%20.txt`, 'line\nbreak']
        await sandbox.fs.uploadFiles(
          names.map((name) => ({ source: Buffer.from(`in ${name}`), destination: `many/${name}` })),
        )
        const downloaded = await sandbox.fs.downloadFiles([
          ...names.map((name) => ({ source: `many/${name}` })),
          { source: 'many/missing' },
          { source: '/etc/shadow' },
        ])
        assert.deepEqual(
          downloaded.map(({ result }) => result?.toString()),
          [...names.map((name) => `in ${name}`), undefined, undefined],
        )
        assert.deepEqual(
          downloaded.slice(-2).map(({ errorDetails }) => [errorDetails?.statusCode, errorDetails?.code]),
          [
            [404, 'FILE_NOT_FOUND'],
            [403, 'FILE_ACCESS_DENIED'],
          ],
        )
        await assert.rejects(sandbox.fs.downloadFile('many/missing'), { statusCode: 404 })
      } finally {
        rmSync(local, { recursive: true })
      }
    })

    test('the SDK uploads and downloads a file as a stream, and reports the progress of the download', async () => {
      const pieces = () => Readable.from(Array.from({ length: 64 }, (_, at) => Buffer.alloc(65_536, at)))
      await sandbox.fs.uploadFileStream(pieces(), 'streamed')
      let progress: { bytesReceived: number; totalBytes?: number | undefined } = { bytesReceived: 0 }
      const back = createHash('sha256')
      const onProgress = (said: typeof progress) => {
        progress = said
      }
      for await (const piece of await sandbox.fs.downloadFileStream('streamed', { onProgress })) back.update(piece)
      const wanted = createHash('sha256')
      for await (const piece of pieces()) wanted.update(piece)
      assert.equal(back.digest('hex'), wanted.digest('hex'))
      assert.deepEqual(progress, { bytesReceived: 4 * MiB, totalBytes: 4 * MiB })
    })

    test('the SDK makes, lists, describes, moves and deletes files, and changes permissions', async () => {
      const home = (await sandbox.getUserHomeDir()) as string
      await sandbox.fs.createFolder('work/deep', '750')
      await sandbox.fs.uploadFile(Buffer.from('1'), 'work/deep/one.ts')
      const tree = await sandbox.fs.listFiles('work', { depth: 2 })
      assert.deepEqual(
        tree.map(({ path, isDir, permissions }) => [path, isDir, permissions]),
        [
          [`${home}/work/deep`, true, '0750'],
          [`${home}/work/deep/one.ts`, false, '0644'],
        ],
      )
      await sandbox.fs.setFilePermissions('work/deep/one.ts', { mode: '700' })
      await sandbox.fs.moveFiles('work/deep/one.ts', 'work/two.ts')
      const info = await sandbox.fs.getFileDetails('work/two.ts')
      assert.deepEqual([info.name, info.size, info.permissions, info.mode], ['two.ts', 1, '0700', '-rwx------'])
      await sandbox.fs.uploadFile(Buffer.from('2'), 'work/other.ts')
      await assert.rejects(sandbox.fs.moveFiles('work/other.ts', 'work/two.ts'), { statusCode: 409 })
      await assert.rejects(sandbox.fs.deleteFile('work'), { statusCode: 400 })
      await sandbox.fs.deleteFile('work', true)
      await assert.rejects(sandbox.fs.listFiles('work'), { statusCode: 404 })
      await assert.rejects(sandbox.fs.uploadFile(Buffer.from('x'), '/etc/passwd'), /may not/)
    })

    test('the SDK finds lines in files, finds files by name, and replaces text in files', async () => {
      await sandbox.fs.uploadFile(Buffer.from('a\nTODO: b.c\n'), 'src/x.ts')
      await sandbox.fs.uploadFile(Buffer.from('TODO\0binary'), 'src/y.bin')
      assert.deepEqual(await sandbox.fs.findFiles('src', 'TODO:'), [
        { file: 'src/x.ts', line: 2, content: 'TODO: b.c' },
      ])
      assert.deepEqual((await sandbox.fs.searchFiles('src', '*.ts')).files, ['src/x.ts'])
      const results = await sandbox.fs.replaceInFiles(['src/x.ts', 'src/missing'], 'b.c', 'done')
      assert.deepEqual(
        results.map(({ file, success }) => [file, success]),
        [
          ['src/x.ts', true],
          ['src/missing', false],
        ],
      )
      assert.equal((await sandbox.fs.downloadFile('src/x.ts')).toString(), 'a\nTODO: done\n')
    })
  })

  test('an upload to /etc/hosts, which is a mount, replaces the content; a download from /sys is complete', async () => {
    await using box = await createBox(alcove, { user: 'root' })
    const hosts = await box.run('cat /etc/hosts')
    for (const name of ['hosts', 'resolv.conf', 'hostname']) {
      const before = await box.run(`cat /etc/${name}`)
      const reply = await call(box, 'POST', `/upload-v2?path=/etc/${name}`, `${before}\n# mine\n`)
      assert.equal(reply.status, 200, await reply.text())
      assert.equal(await box.run(`cat /etc/${name}`), `${before}\n# mine`)
    }
    assert.equal(await box.run('ls -a /etc | grep -c alcove-upload || true'), '0')
    const download = await call(box, 'GET', '/download?path=/etc/hosts')
    assert.equal(await download.text(), `${hosts}\n# mine\n`)
    const online = '/sys/devices/system/cpu/online'
    const processors = await call(box, 'GET', `/download?path=${online}`)
    assert.equal(await processors.text(), `${await box.run(`cat ${online}`)}\n`)
  })

  test('POST /files/move works even for a directory of the image, which the overlay cannot rename', async () => {
    await using box = await createBox(alcove, { user: 'root' })
    const before = await box.run('ls /usr/share/doc | wc -l')
    const moved = await box.toolbox('POST', '/files/move?source=/usr/share/doc&destination=/moved')
    assert.equal(moved.status, 200, JSON.stringify(moved.body))
    assert.equal(await box.run('ls /moved | wc -l; ls -d /usr/share/doc 2>/dev/null || echo gone'), `${before}\ngone`)
  })

  test('a file of 1 GiB is uploaded and downloaded unchanged, and the runner needs little memory meanwhile', async () => {
    await using box = await createBox(alcove)
    const piece = Buffer.from(Array.from({ length: MiB }, (_, at) => (at * 7 + (at >> 8)) % 256))
    const wanted = createHash('sha256')
    const big = async function* () {
      for (let at = 0; at < 1024; at++) {
        wanted.update(piece)
        yield new Uint8Array(piece)
      }
    }
    const grewBy = async (work: () => Promise<void>) => {
      const atFirst = await alcove.memoryOf('runner')
      let most = atFirst
      let isOver = false
      const watch = (async () => {
        while (!isOver) {
          most = Math.max(most, await alcove.memoryOf('runner'))
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      })()
      await work().finally(() => {
        isOver = true
      })
      await watch
      return most - atFirst
    }
    const up = await grewBy(async () => {
      const reply = await call(box, 'POST', '/upload-v2?path=big', ReadableStream.from(big()) as never)
      assert.equal(reply.status, 200, await reply.text())
    })
    const sum = wanted.digest('hex')
    assert.equal((await box.run('sha256sum big')).split(' ')[0], sum)
    const down = await grewBy(async () => {
      const got = createHash('sha256')
      for await (const bytes of (await call(box, 'GET', '/download?path=big')).body!) got.update(bytes)
      assert.equal(got.digest('hex'), sum)
    })
    for (const growth of [up, down]) assert.ok(growth < 150 * MiB, `the runner grew by ${growth / MiB} MiB`)
  })

  test('if an upload to a sandbox is aborted, the existing file is not changed, and no partial file remains', async () => {
    await using box = await createBox(alcove, { user: 'root' })
    await box.run('echo old > file')
    const cut = new AbortController()
    const endless = async function* () {
      for (let at = 0; at < 4; at++) yield new Uint8Array(MiB)
      await until('the upload being received', async () => (await halfFiles(box)) === '1')
      cut.abort()
      yield new Uint8Array(MiB)
    }
    const uploading = call(box, 'POST', '/upload-v2?path=file', ReadableStream.from(endless()) as never, {
      signal: cut.signal,
    })
    await assert.rejects(uploading)
    await until('the upload removed', async () => (await halfFiles(box)) === '0')
    assert.equal(await box.run('cat file'), 'old')
  })

  test('an upload answers 422 if the sandbox’s disk is full, and does not change the existing file', async () => {
    await using box = await createBox(alcove, { disk: 1, user: 'root' })
    await box.run('echo old > file')
    const tooMuch = async function* () {
      for (let at = 0; at < 1500; at++) yield new Uint8Array(MiB).fill(at)
    }
    const reply = await call(box, 'POST', '/upload-v2?path=file', ReadableStream.from(tooMuch()) as never).catch(
      (error) => error as Error,
    )
    // The sandbox answers before it has read the whole upload. A client that is still sending then may get an error instead of the
    // answer.
    if (!(reply instanceof Error)) {
      const body = (await reply.json()) as { message: string }
      assert.equal(reply.status, 422)
      assert.match(body.message, /disk/)
    }
    await until('the upload removed', async () => (await halfFiles(box)) === '0')
    assert.equal(await box.run('cat file'), 'old')
    // Repeat the call, because btrfs frees the space of a deleted file only some seconds later.
    const makeFolder = () => box.toolbox('POST', '/files/folder?path=there-is-room-again')
    await until('room again', async () => (await makeFolder()).status === 201, 120)
  })

  test('an upload to an existing file keeps the file’s inode, so that `tail -f` shows the new lines', async () => {
    await using box = await createBox(alcove)
    await box.run('echo one > log; ln log other; ls -i log > inode; mkdir watched')
    await box.run('(tail -n +1 -f log > seen 2>&1 & echo $! > tail) < /dev/null')
    await until('the first line', async () => (await box.run('cat seen')) === 'one')
    assert.equal((await call(box, 'POST', '/upload-v2?path=log', 'one\ntwo\n')).status, 200)
    await until('the second line', async () => (await box.run('cat seen')) === 'one\ntwo')
    assert.equal(await box.run('ls -i log | cmp - inode && cat other'), 'one\ntwo')
    assert.equal((await call(box, 'POST', '/upload-v2?path=/etc/../home/daytona/watched/new', 'x')).status, 200)
    assert.equal(await box.run('ls -a watched | tail -n +3; kill $(cat tail)'), 'new')
    await box.run('ln -s /home/daytona/there/target dangling')
    assert.equal((await call(box, 'POST', '/upload-v2?path=dangling', 'through')).status, 200)
    assert.equal(await box.run('cat there/target; test -L dangling'), 'through')
  })

  test('a program that watches a directory sees an upload once, complete, and under its final name', async () => {
    await using box = await createBox(alcove)
    const text = 'x'.repeat(3 * MiB)
    await call(box, 'POST', '/upload-v2?path=watch.py', watchProgram)
    await box.run('mkdir seen; cp /bin/sleep seen/program; (seen/program 600 >/dev/null 2>&1 &)')
    await box.run('setsid python3 watch.py > events 2>&1 & until test -s events; do sleep 0.05; done')
    const upload = async (name: string) =>
      assert.equal((await call(box, 'POST', `/upload-v2?path=seen/${name}`, text)).status, 200)
    await upload('new')
    await upload('new')
    await upload('program')
    await box.run('touch seen/end; until grep -q end events; do sleep 0.05; done')
    const events = (await box.run('cat events')).split('\n').slice(1)
    assert.deepEqual(
      events.filter((event) => !/end$/.test(event)),
      [
        `create ${3 * MiB} new`,
        `close_write ${3 * MiB} new`,
        `close_write ${3 * MiB} new`,
        `moved_to ${3 * MiB} program`,
      ],
    )
    await box.run('pkill -f "seen/[p]rogram"')
  })

  test('a download or upload of a file that only root may read answers 403, also through a symbolic link', async () => {
    await using box = await createBox(alcove)
    await box.run('ln -s /etc/shadow final; ln -s /root way; ln -s loop loop')
    for (const [path, status] of [
      ['/etc/shadow', 403],
      ['final', 403],
      ['way/.bashrc', 403],
      ['loop', 400],
      ['/dev/zero', 400],
      ['.', 400],
    ] as const) {
      assert.equal((await call(box, 'GET', `/download?path=${path}`)).status, status, path)
    }
    assert.equal((await call(box, 'POST', '/upload-v2?path=final', 'x')).status, 403)
  })
})
