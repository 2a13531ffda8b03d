import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { cannotRun, file, layer, libraryRoom, noise } from './testing/library-room.ts'
import { makeImage } from './testing/oci-image.ts'

suite('an image download that is interrupted', { skip: cannotRun }, () => {
  const room = libraryRoom()
  const { open, from, bring, below, parts, read } = room

  const image = makeImage({ layers: ['a', 'b', 'c'].map((name) => layer(file(name, noise(300_000)))) })
  const [first, second, last] = image.layers as [string, string, string]
  const asked = (digest: string) => room.registry.asked.filter((path) => path.endsWith(digest)).length
  const isHere = (digest: string) => below('image-downloads').filter((name) => name.endsWith(digest.slice(7))).length

  /** Whether skopeo has this layer completely. It gives the file of a layer its name only then. */
  const isComplete = (digest: string) =>
    below('image-work').some((name) => below(`image-work/${name}/work/blobs/sha256`).includes(digest.slice(7)))

  /** Makes the registry cut the download of the last layer, at most `most` times, when the other two layers are complete. */
  const lastIsCut = (most = Number.POSITIVE_INFINITY) => {
    let cuts = 0
    room.registry.onRequest = async (path, answer) => {
      if (!path.endsWith(last) || cuts++ >= most) return answer
      while (!isComplete(first) || !isComplete(second)) await delay(10)
      return { ...answer, cutAfter: 100_000 }
    }
  }

  test('an image download is retried after a broken connection; complete layers are not downloaded twice', async () => {
    const reference = room.registry.put('x:1', image)
    lastIsCut(1)
    const library = open()
    await bring(library, 'one', from(reference))
    assert.deepEqual([asked(first), asked(second)], [1, 1])
    assert.equal(read(library, 'one', 'c').length, 300_000)
  })

  test('after a failed image download, the next download from the repository reuses the complete layers', async () => {
    const reference = room.registry.put('x:1', image)
    lastIsCut()
    const library = open()
    await assert.rejects(bring(library, 'one', from(reference)), { name: 'ImageFailed' })
    assert.deepEqual([isHere(first), isHere(second), isHere(last), library.list()], [1, 1, 0, []])
    room.registry.onRequest = (_path, answer) => answer
    await bring(library, 'other', from(room.registry.put('others:1', image)))
    assert.deepEqual([asked(first), asked(second)], [2, 2])
    const lines: string[] = []
    await bring(library, 'one', from(reference), { onLine: (line) => lines.push(line) })
    assert.deepEqual([asked(first), asked(second)], [2, 2])
    assert.match(lines[1] ?? '', /^downloading 1 layers, .*; 2 more are already on this host$/)
    assert.deepEqual(below('image-downloads'), [])
  })

  test('if a runner is killed during an image download, the next runner reuses the complete layers', async () => {
    const reference = room.registry.put('x:1', image)
    room.registry.onRequest = (path, answer) => (path.endsWith(last) ? new Promise(() => {}) : answer)
    const program =
      `import { Library } from ${JSON.stringify(import.meta.resolve('./library.ts'))}\n` +
      `import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}\n` +
      `const library = new Library({ ...${JSON.stringify(parts())}, log: silentLog() })\n` +
      `await library.bring({ image: 'one', source: { kind: 'registry', reference: '${reference}' }, maxGiB: 1 })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    const ended = once(child, 'close')
    try {
      const complete = () =>
        below('image-work').flatMap((name) => below(`image-work/${name}/work/blobs/sha256`)).length >= 2
      while (!complete() && child.exitCode === null) await delay(20)
    } finally {
      child.kill('SIGKILL')
      await ended
    }
    const library = open()
    await library.open()
    assert.deepEqual([isHere(first), isHere(second), below('image-work')], [1, 1, []])
    room.registry.onRequest = (_path, answer) => answer
    await bring(library, 'one', from(reference))
    assert.deepEqual([asked(first), asked(second)], [1, 1])
    assert.equal(read(library, 'one', 'a').length, 300_000)
  })

  test('layers kept from a failed download count towards the limit `keptLayersBytes`', async () => {
    const reference = room.registry.put('x:1', image)
    lastIsCut()
    await assert.rejects(bring(open({ keptLayersBytes: 400_000 }), 'one', from(reference)))
    assert.equal(below('image-downloads').length, 1)
  })

  test('a layer kept from a failed download is downloaded again if a power cut has shortened its file', async () => {
    const reference = room.registry.put('x:1', image)
    lastIsCut()
    await assert.rejects(bring(open(), 'one', from(reference)), { name: 'ImageFailed' })
    const saved = below('image-downloads').find((name) => name.endsWith(first.slice(7))) as string
    await truncate(join(room.directory, 'pool/image-downloads', saved), 0)
    room.registry.onRequest = (_path, answer) => answer
    const library = open()
    await bring(library, 'one', from(reference))
    assert.deepEqual([asked(first), asked(second)], [2, 1])
    assert.equal(read(library, 'one', 'a').length, 300_000)
  })

  test('layers kept from failed image downloads stay within their limit, even if another download hangs', async () => {
    const [endless, reference] = [
      room.registry.put('endless:1', makeImage({ layers: [layer(file('d'))] })),
      room.registry.put('x:1', image),
    ]
    lastIsCut()
    const cut = room.registry.onRequest
    room.registry.onRequest = (path, answer, request) =>
      path.includes('/endless/blobs/') ? new Promise(() => {}) : cut(path, answer, request)
    const library = open({ keptLayersBytes: 400_000 })
    const cancel = new AbortController()
    const waiting = bring(library, 'two', from(endless), { signal: cancel.signal })
    waiting.catch(() => {})
    try {
      while (!room.registry.asked.some((path) => path.includes('/endless/blobs/'))) await delay(10)
      await assert.rejects(bring(library, 'one', from(reference)))
      assert.equal(below('image-downloads').length, 1)
    } finally {
      cancel.abort()
      await assert.rejects(waiting)
    }
  })
})
