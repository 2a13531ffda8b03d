// Tests a store in a directory, and a store on a real S3 server, which checks signatures. Then tests stores that fail.
import assert from 'node:assert/strict'
import { readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, suite, test } from 'node:test'
import type { S3Address } from '#src/kit/store-address.ts'
import { needsRoot } from '#test/needs-root.ts'
import { cutEverywhere } from '#test/power-cut/cut-everywhere.ts'
import { DirectoryStore } from './directory-store.ts'
import { ArchiveFailed, type Why } from './failed.ts'
import { patient } from './patient-store.ts'
import { S3Store } from './s3-store.ts'
import type { ObjectStore } from './store.ts'
import { Scratch } from './testing/disks.ts'
import { startS3, withoutS3 } from './testing/real-s3.ts'

const hash = 'ab'.repeat(32)
const limit = 1024 * 1024

const fails = (why: Why, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof ArchiveFailed, String(error))
  assert.equal(error.why, why)
  assert.match(error.message, message)
  return true
}

const keysBelow = async (store: ObjectStore, prefix: string) =>
  (await Array.fromAsync(store.list(prefix))).map(({ key, bytes }) => `${key} ${bytes}`).sort()

const promises = (open: () => ObjectStore) => {
  let store: ObjectStore
  before(() => {
    store = open()
  })
  after(() => store.close())

  test('a stored object can be read, replaced, listed with its size, and removed', async () => {
    await store.put('a/chunks/one', Buffer.from('first'))
    await store.put('a/chunks/one', Buffer.from('second one'))
    await store.put(`a/chunks/${hash}`, Buffer.alloc(1000, 7))
    await store.put('a/empty', Buffer.alloc(0))
    await store.put('ab/other', Buffer.from('x'))
    assert.equal((await store.get('a/chunks/one', limit))?.toString(), 'second one')
    assert.ok((await store.get(`a/chunks/${hash}`, limit))?.equals(Buffer.alloc(1000, 7)))
    assert.equal((await store.get('a/empty', limit))?.length, 0)
    assert.deepEqual(await keysBelow(store, 'a/'), [`a/chunks/${hash} 1000`, 'a/chunks/one 10', 'a/empty 0'])
    assert.deepEqual(await keysBelow(store, 'a/chunks/'), [`a/chunks/${hash} 1000`, 'a/chunks/one 10'])
    for (const key of ['a/chunks/one', `a/chunks/${hash}`, 'a/empty', 'ab/other']) await store.remove(key)
    assert.deepEqual(await keysBelow(store, 'a/'), [])
    assert.equal(await store.get('a/chunks/one', limit), undefined)
  })

  test('for an object that is not in the store, `get` returns undefined, and `remove` succeeds', async () => {
    assert.equal(await store.get('never/was', limit), undefined)
    assert.deepEqual(await keysBelow(store, 'never/'), [])
    await store.remove('never/was')
  })

  test('`get` refuses a stored object that is larger than the argument `limit`, without reading the object', async () => {
    await store.put('large', Buffer.alloc(limit + 1))
    await assert.rejects(store.get('large', limit), fails('damaged', /one of its objects is larger than Alcove writes/))
    await store.remove('large')
  })

  test('a list of a store’s objects is complete even if the caller removes each object once it is listed', async () => {
    const keys = Array.from({ length: 30 }, (_, at) => `many/${at}`)
    await Promise.all(keys.map((key) => store.put(key, Buffer.from(key))))
    const seen: string[] = []
    for await (const { key } of store.list('many/')) {
      seen.push(key)
      await store.remove(key)
    }
    assert.deepEqual(seen.sort(), keys.sort())
    assert.deepEqual(await keysBelow(store, 'many/'), [])
  })

  test('if the caller’s abort signal is aborted, a store’s put, get and remove fail with the signal’s reason', async () => {
    const reason = new Error('no more')
    const signal = AbortSignal.abort(reason)
    await assert.rejects(store.put('x', Buffer.from('x'), signal), reason)
    await assert.rejects(store.get('x', limit, signal), reason)
    await assert.rejects(store.remove('x', signal), reason)
    assert.equal(await store.get('x', limit), undefined)
  })
}

suite('a store in a directory', () => {
  const scratch = new Scratch()
  after(() => scratch[Symbol.dispose]())
  promises(() => new DirectoryStore(scratch.at('store')))

  test('only root can read a directory store; a directory is removed together with its last object', async () => {
    const root = scratch.at('modes')
    const store = new DirectoryStore(root)
    await store.put(`s/chunks/${hash}`, Buffer.from('x'))
    assert.equal(statSync(root).mode & 0o777, 0o700)
    assert.equal(statSync(`${root}/s/chunks/ab/${hash}`).mode & 0o777, 0o600)
    await store.remove(`s/chunks/${hash}`)
    assert.deepEqual(readdirSync(root), ['.incoming'])
    assert.deepEqual(readdirSync(`${root}/.incoming`), [])
  })

  test('temporary files of killed programs in a directory store are removed after a day, but not before', async () => {
    const incoming = scratch.make('left/.incoming')
    for (const name of ['old', 'new']) writeFileSync(`${incoming}/${name}`, 'x')
    utimesSync(`${incoming}/old`, 1, 1)
    await new DirectoryStore(scratch.at('left')).put('k', Buffer.from('x'))
    assert.deepEqual(readdirSync(incoming), ['new'])
  })

  test('a directory store refuses a write that would leave less free space than configured', {
    skip: needsRoot,
  }, async () => {
    const store = new DirectoryStore(scratch.small('kept', 4), 3 * 1024 ** 2)
    await store.put('small', Buffer.alloc(100_000))
    await assert.rejects(store.put('large', Buffer.alloc(2 * 1024 ** 2)), fails('store full', /is full/))
    assert.deepEqual(await keysBelow(store, ''), ['small 100000'])
  })

  test('a write to a full directory store fails and says that it is full; no part of the object is left', {
    skip: needsRoot,
  }, async () => {
    const store = patient(new DirectoryStore(scratch.small('full', 1)))
    await store.put('fits', Buffer.alloc(1000))
    await assert.rejects(store.put('does-not', Buffer.alloc(2 * limit)), fails('store full', /is full\.$/))
    assert.deepEqual(await keysBelow(store, ''), ['fits 1000'])
  })

  test('a directory store whose path is a file refuses every write', async () => {
    writeFileSync(scratch.at('file'), '')
    const store = new DirectoryStore(scratch.at('file'))
    await assert.rejects(store.put('k', Buffer.from('x')), fails('store refused', /cannot be used/))
  })
})

suite('a store in a directory, with power cuts at any moment', { skip: needsRoot }, () => {
  test('an object that was being written to the store at a power cut is complete or missing afterwards', () => {
    const keys = ['one/manifest', `one/chunks/${hash}`]
    return cutEverywhere(
      async (directory, mark) => {
        const store = new DirectoryStore(directory)
        for (const key of keys) {
          await store.put(key, Buffer.from(`contents of ${key}`))
          mark()
        }
        store.close()
      },
      async ({ told, directory, after }) => {
        const store = new DirectoryStore(directory)
        for (const [n, key] of keys.entries()) {
          const found = (await store.get(key, limit))?.toString()
          if (n < told || found !== undefined) assert.equal(found, `contents of ${key}`, after)
        }
        store.close()
      },
    )
  })
})

suite('a store in S3', { skip: withoutS3 }, () => {
  let s3: Awaited<ReturnType<typeof startS3>>
  before(async () => {
    s3 = await startS3('archives')
  })
  after(() => s3.stop())
  // The store lists objects in pages of seven, so that the lists in these tests have several pages.
  promises(() => new S3Store(s3.address, 7))

  const refusals: [string, Partial<S3Address>, RegExp][] = [
    ['a wrong secret', { secret: 'wrong' }, /SignatureDoesNotMatch/],
    ['a key that is not known', { accessKey: 'alcove:nobody' }, /SignatureDoesNotMatch|InvalidAccessKeyId/],
    ['a bucket that is not there', { bucket: 'elsewhere' }, /NoSuchBucket/],
    ['another region', { region: 'eu-west-9' }, /AuthorizationHeaderMalformed/],
  ]
  for (const [what, over, sentence] of refusals) {
    test(`an S3 store with ${what} fails immediately, and its error does not contain the secret`, async () => {
      const store = patient(new S3Store({ ...s3.address, ...over }))
      const isRefused = (error: unknown) => {
        assert.ok(!String((error as Error).message).includes(over.secret ?? s3.address.secret))
        return fails('store refused', sentence)(error)
      }
      await assert.rejects(store.put('k', Buffer.from('x')), isRefused)
      await assert.rejects(store.get('k', limit), isRefused)
      await assert.rejects(keysBelow(store, 'k/'), isRefused)
      await store.close()
    })
  }
})

suite('an S3 store that fails', () => {
  const addressOf = (port: number): S3Address => ({
    kind: 's3',
    endpoint: new URL(`http://127.0.0.1:${port}`),
    region: 'us-east-1',
    bucket: 'archives',
    prefix: '',
    accessKey: 'key',
    secret: 'secret',
  })
  /** Starts a server that sends these answers one after the other. The last answer is repeated. */
  const answering = async (answers: readonly [status: number, body: string][]) => {
    let asked = 0
    const server = createServer((_, reply) => {
      const [status, body] = answers[Math.min(asked++, answers.length - 1)]!
      reply.writeHead(status, { connection: 'close' }).end(body)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const stop = () => new Promise<unknown>((resolve) => server.close(resolve))
    const store = patient(new S3Store(addressOf((server.address() as AddressInfo).port)), [1, 1])
    const dispose = async () => {
      await store.close()
      await stop()
    }
    return { store, asked: () => asked, [Symbol.asyncDispose]: dispose }
  }

  test('a call to an S3 store that answers 503 or 500 is retried until it succeeds', async () => {
    await using s3 = await answering([
      [503, '<Error><Code>SlowDown</Code></Error>'],
      [500, 'x'],
      [200, 'content'],
    ])
    assert.equal((await s3.store.get('k', limit))?.toString(), 'content')
    assert.equal(s3.asked(), 3)
  })

  test('a call to an S3 store that stays down fails after a few retries, with a message fit for users', async () => {
    await using s3 = await answering([[503, '<Error><Code>SlowDown</Code></Error>']])
    await assert.rejects(
      s3.store.put('k', Buffer.from('x')),
      fails('store down', /does not work: SlowDown\. Tried 3 times/),
    )
    assert.equal(s3.asked(), 3)
    await assert.rejects(keysBelow(s3.store, 'k/'), fails('store down', /Tried 3 times/))
  })

  test('a call to an S3 store that is full is not retried', async () => {
    await using s3 = await answering([[507, '<Error><Code>XMinioStorageFull</Code></Error>']])
    await assert.rejects(s3.store.put('k', Buffer.from('x')), fails('store full', /full: XMinioStorageFull/))
    assert.equal(s3.asked(), 1)
  })

  test('the error about an unreachable S3 store names its host and the number of tries', async () => {
    const store = patient(new S3Store(addressOf(1)), [1])
    await assert.rejects(
      store.get('k', limit),
      fails('store down', /127\.0\.0\.1:1\) cannot be reached: ECONNREFUSED\. Tried 2/),
    )
    await store.close()
  })

  test('an invalid answer from an S3 store is an error that does not repeat the answer’s text', async () => {
    await using s3 = await answering([[400, '<Error><Code>\u001b[31m<script></Code></Error>']])
    await assert.rejects(s3.store.get('k', limit), fails('store refused', /refuses: HTTP 400\.$/))
  })

  test('an invalid or incomplete list from an S3 store is an error, so that no object counts as removed', async () => {
    const list = (rest: string) =>
      `<?xml version="1.0"?><ListBucketResult xmlns="x"><Contents><Key>k/a</Key><Size>1</Size></Contents>${rest}`
    const more = '<IsTruncated>true</IsTruncated>'
    const next = '<NextContinuationToken>t</NextContinuationToken>'
    const end = '</ListBucketResult>'
    const pages = ['<html>Welcome</html>', '', list(''), list(more + end), list(more + next + end)]
    for (const page of pages) {
      await using s3 = await answering([[200, page]])
      await assert.rejects(
        keysBelow(s3.store, 'k/'),
        fails('store down', /does not work: it answered with an invalid list of objects\./),
      )
    }
    await using s3 = await answering([
      [200, list(more + end)],
      [200, list(more + next + end)],
      [200, list(`<IsTruncated>false</IsTruncated>${end}\n`)],
    ])
    assert.deepEqual(new Set(await keysBelow(s3.store, 'k/')), new Set(['k/a 1']))
    assert.equal(s3.asked(), 3)
  })

  test('if a call to S3 waits for its retry, an abort ends the call immediately, with the abort’s reason', async () => {
    const s3 = patient(new S3Store(addressOf(1)), [60_000])
    const abort = new AbortController()
    const asking = s3.get('k', limit, abort.signal)
    const reason = new Error('enough')
    abort.abort(reason)
    await assert.rejects(asking, reason)
    await s3.close()
  })
})
