// Tests uploads of files for images, with the S3 client of the public SDK, and with calls that only a malicious client makes.
import assert from 'node:assert/strict'
import { createCipheriv, createHash, createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { suite, test } from 'node:test'
import { crc32 } from 'node:zlib'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { AwsV4Signer } from 'aws4fetch'
import { sweepContexts } from '#src/runner/contexts/sweep.ts'
import { contextBucket, contextRegion } from '#src/wire/contexts.ts'
import { hash, keyIn, known, sessionToken, startUploads, type Uploads } from './sides.ts'

const ours = { organizationId: 'ours', hash }
const MiB = 1024 * 1024

const readBack = async ({ contexts }: Uploads, name = ours) => {
  const table = await contexts.find(name)
  assert.ok(table, 'it is not there')
  const pieces: Buffer[] = []
  for await (const piece of contexts.read(name, table)) pieces.push(piece)
  return Buffer.concat(pieces)
}

const codeOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'done',
    (error: { name: string }) => error.name,
  )

const list = async (client: S3Client, Prefix: string) =>
  ((await client.send(new ListObjectsV2Command({ Bucket: contextBucket, Prefix }))).Contents ?? []).map(
    ({ Key }) => Key,
  )

/**
 * Returns bytes that cannot be compressed and that are the same in each run, so that their size in the store is always the same.
 */
const noise = (bytes: number): Buffer =>
  createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(bytes))

suite('uploading the files of a definition', () => {
  test('files for an image, uploaded whole or in parts, are stored only for the organization that sent them', async () => {
    await using uploads = await startUploads()
    const [client, stranger] = [uploads.client(), uploads.client('ALCVTHEIRS')]
    for (const [name, bytes] of [
      ['1'.repeat(32), 0],
      ['2'.repeat(32), 2560],
      ['3'.repeat(32), 5 * MiB],
      ['4'.repeat(32), 11 * MiB + 1],
    ] as const) {
      const content = randomBytes(bytes)
      assert.deepEqual(await list(client, `ours/${name}/`), [])
      await new Upload({ client, params: { ...keyIn('ours', name), Body: Readable.from([content]) } }).done()
      assert.deepEqual(await list(client, `ours/${name}/`), [`ours/${name}/context.tar`])
      assert.ok(content.equals(await readBack(uploads, { organizationId: 'ours', hash: name })), `${bytes} bytes`)
      const { ContentLength } = await client.send(new HeadObjectCommand(keyIn('ours', name)))
      assert.equal(ContentLength, bytes)
    }
    assert.equal((await list(client, 'ours/')).length, 4)
    const { Contents, IsTruncated } = await client.send(
      new ListObjectsV2Command({ Bucket: contextBucket, Prefix: 'ours/', MaxKeys: 3 }),
    )
    assert.deepEqual([Contents?.length, IsTruncated], [3, true])
    assert.deepEqual(await list(stranger, 'theirs/'), [])
    // The store must contain nothing of unfinished uploads.
    assert.ok((await uploads.objects()).every((key) => !key.includes('/uploads/')))
  })

  test('the gate passes uploads to its own host’s runner; without that runner, it answers ServiceUnavailable', async () => {
    await using here = await startUploads({ elsewhere: { isRunnerHere: true } })
    const [client, name] = [here.client(), '5'.repeat(32)]
    await client.send(new PutObjectCommand({ ...keyIn('ours', name), Body: noise(2560) }))
    assert.deepEqual(await list(client, 'ours/'), [`ours/${name}/context.tar`])
    await using nowhere = await startUploads({ elsewhere: { isRunnerHere: false } })
    const refused = nowhere.client().send(new PutObjectCommand({ ...keyIn('ours', name), Body: noise(10) }))
    await assert.rejects(refused, { name: 'ServiceUnavailable' })
  })

  test('no organization can list or write another organization’s contexts; nobody can download a context', async () => {
    await using uploads = await startUploads()
    const [client, stranger] = [uploads.client(), uploads.client('ALCVTHEIRS')]
    await client.send(new PutObjectCommand({ ...keyIn('ours'), Body: 'ours' }))
    const body = { ...keyIn('ours', 'b'.repeat(32)), Body: 'theirs' }
    for (const [asked, code] of [
      [() => stranger.send(new PutObjectCommand(body)), 'AccessDenied'],
      [() => stranger.send(new CreateMultipartUploadCommand(keyIn('ours'))), 'AccessDenied'],
      [
        () => stranger.send(new UploadPartCommand({ ...body, UploadId: '0'.repeat(32), PartNumber: 1 })),
        'AccessDenied',
      ],
      [
        () => stranger.send(new AbortMultipartUploadCommand({ ...keyIn('ours'), UploadId: '0'.repeat(32) })),
        'AccessDenied',
      ],
      [() => list(stranger, 'ours/'), 'AccessDenied'],
      [() => list(stranger, `ours/${hash}/`), 'AccessDenied'],
      [() => list(stranger, ''), 'AccessDenied'],
      [() => list(stranger, 'theirs'), 'AccessDenied'],
      [() => client.send(new GetObjectCommand(keyIn('ours'))), 'AccessDenied'],
    ] as const)
      assert.equal(await codeOf(asked()), code)
    assert.equal((await readBack(uploads)).toString(), 'ours')
    assert.ok((await uploads.objects()).every((key) => key.startsWith(`contexts/ours/${hash}/`)))
  })

  test('the gate refuses an upload that is not named like a context, even if the name is URL-encoded', async () => {
    await using uploads = await startUploads()
    const keys = ['ours/x/context.tar', `ours/${hash}/other`, `ours/${hash}/../../theirs/${hash}/context.tar`]
    for (const Key of [
      ...keys,
      `ours//${hash}/context.tar`,
      `ours/${hash.toUpperCase()}/context.tar`,
      'x'.repeat(1000),
    ])
      assert.notEqual(
        await codeOf(uploads.client().send(new PutObjectCommand({ Bucket: contextBucket, Key, Body: 'x' }))),
        'done',
        Key,
      )
    for (const [path, status] of [
      [`/${contextBucket}/ours/${hash}/%2e%2e/context.tar`, 403],
      [`/${contextBucket}/ours%2f${hash}/context.tar`, 403],
      [`/${contextBucket}x/ours/${hash}/context.tar`, 404],
      [`/${contextBucket}/ours/${hash}/context.tar?partNumber=1&partNumber=2`, 400],
    ] as const)
      assert.equal((await raw(uploads, { path, body: 'x' })).status, status, path)
    assert.deepEqual(await uploads.objects(), [])
  })

  test('a call with a malformed upload id, for example to abort an upload, answers NoSuchUpload', async () => {
    await using uploads = await startUploads()
    const client = uploads.client()
    for (const UploadId of ['x', '../../theirs', 'A'.repeat(32), 'a'.repeat(33)]) {
      const upload = { ...keyIn('ours'), UploadId }
      const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: `"${'0'.repeat(32)}"` }] }
      assert.equal(
        await codeOf(client.send(new UploadPartCommand({ ...upload, PartNumber: 1, Body: 'x' }))),
        'NoSuchUpload',
      )
      assert.equal(
        await codeOf(client.send(new CompleteMultipartUploadCommand({ ...upload, MultipartUpload }))),
        'NoSuchUpload',
      )
      assert.equal(await codeOf(client.send(new AbortMultipartUploadCommand(upload))), 'NoSuchUpload')
    }
    assert.deepEqual(await uploads.objects(), [])
  })

  test('the gate refuses an upload with an unknown or expired key, a wrong signature or a wrong date', async () => {
    await using uploads = await startUploads()
    const put = (client: S3Client) => codeOf(client.send(new PutObjectCommand({ ...keyIn('ours'), Body: 'x' })))
    assert.equal(await put(uploads.client('ALCVNOBODY')), 'InvalidAccessKeyId')
    assert.equal(await put(uploads.client('ALCVOURS', { token: 'another' })), 'InvalidAccessKeyId')
    assert.equal(await put(uploads.client('ALCVEXPIRED')), 'ExpiredToken')
    assert.equal(await put(uploads.client('ALCVOURS', { secret: 'guessed' })), 'SignatureDoesNotMatch')
    const code = async (asked: Partial<Raw>) => {
      const { status, text } = await raw(uploads, { path, body: 'x', ...asked })
      return [status, /<Code>(\w+)</.exec(text)?.[1]]
    }
    const path = `/${contextBucket}/ours/${hash}/context.tar`
    assert.deepEqual(await code({}), [200, undefined])
    assert.deepEqual(await code({ headers: { authorization: '' } }), [403, 'AccessDenied'])
    assert.deepEqual(await code({ headers: { authorization: 'Bearer x' } }), [403, 'AccessDenied'])
    for (const minutes of [-16, 16])
      assert.deepEqual(await code({ at: new Date(Date.now() + minutes * 60_000) }), [403, 'RequestTimeTooSkewed'])
    // Calls that differ in path, method, query or header from the call for which the signature was made.
    assert.deepEqual(await code({ sentPath: path.replace('ours', 'theirs') }), [403, 'SignatureDoesNotMatch'])
    assert.deepEqual(await code({ method: 'POST', signedMethod: 'PUT' }), [403, 'SignatureDoesNotMatch'])
    assert.deepEqual(await code({ sentPath: `${path}?uploads=` }), [403, 'SignatureDoesNotMatch'])
    assert.deepEqual(await code({ headers: { host: 'elsewhere' } }), [403, 'SignatureDoesNotMatch'])
    assert.deepEqual(await code({ headers: { host: 'no server' } }), [400, 'InvalidRequest'])
    assert.deepEqual(await code({ headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }), [
      403,
      'SignatureDoesNotMatch',
    ])
  })

  test('the gate refuses an upload whose body differs from its signed hash; a stored context never changes', async () => {
    await using uploads = await startUploads()
    const path = `/${contextBucket}/ours/${hash}/context.tar`
    const lied = await raw(uploads, { path, body: 'signed', sent: 'forged' })
    assert.deepEqual([lied.status, /<Code>(\w+)</.exec(lied.text)?.[1]], [400, 'BadDigest'])
    assert.equal(await uploads.contexts.find(ours), undefined)
    await raw(uploads, { path, body: 'first' })
    // Upload different content to the same path, with and without a signed hash. The stored context must stay `first`.
    assert.equal((await raw(uploads, { path, body: 'second' })).status, 200)
    assert.equal((await raw(uploads, { path, body: 'third', payload: 'UNSIGNED-PAYLOAD' })).status, 200)
    assert.equal((await readBack(uploads)).toString(), 'first')
  })

  test('an upload in signed chunks is stored only if all checksums and signatures are right', async () => {
    await using uploads = await startUploads()
    const content = randomBytes(200_000)
    const name = (digit: string) => `/${contextBucket}/ours/${digit.repeat(32)}/context.tar`
    const trailer = { payload: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER', trailer: true }
    const signed = { payload: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD', isSigned: true }
    const both = { payload: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER', isSigned: true, trailer: true }
    for (const [digit, kind] of Object.entries({ 1: trailer, 2: signed, 3: both })) {
      const good = await chunked(uploads, name(digit), content, kind)
      assert.equal(good.status, 200, `${kind.payload}: ${good.text}`)
      assert.ok(content.equals(await readBack(uploads, { organizationId: 'ours', hash: digit.repeat(32) })))
    }
    for (const [kind, harm] of [
      [trailer, 'checksum'],
      [trailer, 'length'],
      [trailer, 'cut'],
      [signed, 'chunk'],
      [signed, 'cut'],
      [both, 'trailer'],
    ] as const) {
      const { status } = await chunked(uploads, name('4'), content, kind, harm)
      assert.ok(status >= 400 && status < 500, `${kind.payload} with a wrong ${harm}: ${status}`)
      assert.equal(await uploads.contexts.find({ organizationId: 'ours', hash: '4'.repeat(32) }), undefined, harm)
    }
  })

  test('an S3 client can upload a stream to the gate before the stream’s hash is known', async () => {
    await using uploads = await startUploads()
    const content = randomBytes(300_000)
    await uploads
      .client()
      .send(new PutObjectCommand({ ...keyIn('ours'), Body: Readable.from([content]), ContentLength: content.length }))
    assert.ok(content.equals(await readBack(uploads)))
  })

  test('the gate refuses an upload above a limit, and does not count it towards the organization’s limits', async () => {
    const limits = { largestBytes: 6 * MiB, bytesOfOrganization: 9 * MiB, contextsOfOrganization: 3, partsOfUpload: 2 }
    await using uploads = await startUploads({ limits })
    const client = uploads.client()
    const put = (digit: string, bytes: number) =>
      codeOf(client.send(new PutObjectCommand({ ...keyIn('ours', digit.repeat(32)), Body: noise(bytes) })))
    assert.equal(await put('1', 6 * MiB + 1), 'EntityTooLarge')
    const inParts = new Upload({ client, params: { ...keyIn('ours'), Body: Readable.from([noise(8 * MiB)]) } })
    assert.equal(await codeOf(inParts.done()), 'EntityTooLarge')
    assert.equal(await uploads.contexts.find(ours), undefined)
    assert.equal(await put('2', 100), 'EntityTooLarge')
    uploads.time.now += 25 * 3_600_000
    assert.equal(await sweepContexts(uploads.contexts, { inUse: [] }), 2)
    uploads.time.now += 60_000
    for (const digit of ['3', '4', '5']) assert.equal(await put(digit, 100), 'done')
    assert.equal(await put('6', 100), 'EntityTooLarge')
    assert.equal(
      await codeOf(uploads.client('ALCVTHEIRS').send(new PutObjectCommand({ ...keyIn('theirs'), Body: 'x' }))),
      'done',
    )
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(keyIn('ours', '3'.repeat(32))))
    const part = (PartNumber: number) =>
      codeOf(client.send(new UploadPartCommand({ ...keyIn('ours', '3'.repeat(32)), UploadId, PartNumber, Body: 'x' })))
    assert.deepEqual([await part(2), await part(3)], ['done', 'InvalidRequest'])
  })

  test('the gate disconnects an upload that sends nothing for too long; other uploads are not blocked', async () => {
    await using uploads = await startUploads({ limits: { silentMs: 300, atOnceOfOrganization: 1 } })
    const path = `/${contextBucket}/ours/${hash}/context.tar`
    const silent = raw(uploads, { path, body: 'x'.repeat(1000), sent: 'x' })
    // In this test, the organization may have only one upload at a time. The next upload succeeds, so the silent upload was ended.
    const { text } = await silent
    assert.match(text, /<Code>RequestTimeout</)
    assert.equal((await raw(uploads, { path, body: 'whole' })).status, 200)
  })

  test('if a client disconnects during an upload, nothing of the upload is stored', async () => {
    await using uploads = await startUploads()
    const path = `/${contextBucket}/ours/${hash}/context.tar`
    await assert.rejects(raw(uploads, { path, body: 'x'.repeat(MiB), sent: 'x', vanishes: true }))
    assert.equal((await raw(uploads, { path: path.replace(hash, 'b'.repeat(32)), body: 'y' })).status, 200)
    assert.deepEqual(await list(uploads.client(), 'ours/'), [`ours/${'b'.repeat(32)}/context.tar`])
  })

  test('if the object store fails, the answer to an upload is ServiceUnavailable', async () => {
    const wrap = (store: object) =>
      Object.assign(Object.create(store), { put: () => Promise.reject(new TypeError('x')) })
    await using uploads = await startUploads({ wrap: wrap as never })
    assert.equal(
      await codeOf(uploads.client().send(new PutObjectCommand({ ...keyIn('ours'), Body: 'x' }))),
      'ServiceUnavailable',
    )
  })
})

suite('stored contexts', () => {
  test('a context is removed a day after its last use, but not while a build uses it', async () => {
    await using uploads = await startUploads()
    const client = uploads.client()
    const names = ['1', '2', '3'].map((digit) => digit.repeat(32))
    for (const name of names) await client.send(new PutObjectCommand({ ...keyIn('ours', name), Body: name }))
    await client.send(new CreateMultipartUploadCommand(keyIn('ours', '4'.repeat(32))))
    const sweep = (...hashes: string[]) =>
      sweepContexts(uploads.contexts, { inUse: [{ organizationId: 'ours', hashes }] })
    uploads.time.now += 20 * 3_600_000
    assert.equal(await sweep(), 0)
    await list(client, `ours/${names[1]}/`)
    uploads.time.now += 5 * 3_600_000
    assert.equal(await sweep(names[0] as string), 2)
    assert.deepEqual(await list(client, 'ours/').then((keys) => keys.map((key) => key?.[5])), ['1', '2'])
    uploads.time.now += 25 * 3_600_000
    assert.equal(await sweepContexts(uploads.contexts, { organizationId: 'theirs', inUse: [] }), 0)
    assert.equal(await sweep(), 2)
    assert.deepEqual(await uploads.objects(), [])
  })

  test('a context of which the store has lost a part is not listed, and can be uploaded again', async () => {
    await using uploads = await startUploads()
    const client = uploads.client()
    await client.send(new PutObjectCommand({ ...keyIn('ours'), Body: 'content' }))
    const [chunk = ''] = (await uploads.objects()).filter((key) => key.includes('/chunks/'))
    await uploads.contexts.store.remove(chunk)
    await assert.rejects(readBack(uploads), /missing/)
    assert.deepEqual(await list(client, 'ours/'), [])
    await client.send(new PutObjectCommand({ ...keyIn('ours'), Body: 'content' }))
    assert.equal((await readBack(uploads)).toString(), 'content')
  })
})

type Raw = {
  path: string
  body: string | Buffer
  /** The body that is sent. Default: `body`, for which the signature is made. */
  sent?: string | Buffer
  sentPath?: string
  method?: string
  signedMethod?: string
  headers?: Record<string, string>
  payload?: string
  at?: Date
  vanishes?: boolean
}

const sign = async ({ url }: Uploads, { path, body, method = 'PUT', ...given }: Raw) => {
  const signer = new AwsV4Signer({
    method: given.signedMethod ?? method,
    url: `${url}${path}`,
    headers: {
      'x-amz-content-sha256': given.payload ?? createHash('sha256').update(body).digest('hex'),
    },
    accessKeyId: 'ALCVOURS',
    secretAccessKey: known['ALCVOURS']!.secret,
    sessionToken,
    service: 's3',
    region: contextRegion,
    ...(given.at ? { datetime: given.at.toISOString().replace(/[:-]|\.\d{3}/g, '') } : {}),
  })
  const { headers } = await signer.sign()
  return { headers: Object.fromEntries(headers as unknown as Iterable<[string, string]>), signer }
}

/** Signs a call and sends it. The sent call can differ from the signed call. */
const raw = async (uploads: Uploads, asked: Raw) => send(uploads, asked, (await sign(uploads, asked)).headers)

const send = async ({ port }: Uploads, asked: Raw, signed: Record<string, string>) => {
  const { path, body, sent = body, sentPath = path, method = 'PUT', headers = {}, vanishes } = asked
  const length = vanishes || asked.sent === undefined || sent.length < body.length ? body.length : sent.length
  const outgoing = request({
    host: '127.0.0.1',
    port,
    path: sentPath,
    method,
    headers: {
      host: `127.0.0.1:${port}`,
      ...signed,
      'content-length': asked.payload?.startsWith('STREAMING') ? sent.length : length,
      ...headers,
    },
  })
  outgoing.write(sent)
  if (vanishes) setTimeout(() => outgoing.destroy(new Error('gone')), 100)
  else if (sent.length >= length || asked.payload?.startsWith('STREAMING')) outgoing.end()
  const [answer] = await once(outgoing, 'response')
  const pieces: Buffer[] = []
  for await (const piece of answer) pieces.push(piece as Buffer)
  outgoing.destroy()
  return { status: answer.statusCode as number, text: Buffer.concat(pieces).toString() }
}

type Harm = 'checksum' | 'length' | 'cut' | 'chunk' | 'trailer'

/**
 * Sends an upload in signed chunks. The code follows the documentation of Signature Version 4 ("sigv4-streaming"), and shares no
 * code with the server.
 */
const chunked = async (
  uploads: Uploads,
  path: string,
  content: Buffer,
  { payload, trailer = false, isSigned = false }: { payload: string; trailer?: boolean; isSigned?: boolean },
  harm?: Harm,
) => {
  const asked: Raw = { path, body: content, payload }
  const { headers, signer } = await sign(uploads, asked)
  const scope = `${signer.datetime.slice(0, 8)}/${contextRegion}/s3/aws4_request`
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const key = scope.split('/').reduce<string | Buffer>(hmac, `AWS4${known['ALCVOURS']!.secret}`)
  const sha = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex')
  let before = await signer.signature()
  const parts: (string | Buffer)[] = []
  for (const chunk of [content.subarray(0, 70_000), content.subarray(70_000), Buffer.alloc(0)]) {
    const text = ['AWS4-HMAC-SHA256-PAYLOAD', signer.datetime, scope, before, sha(''), sha(chunk)].join('\n')
    before = hmac(key, text).toString('hex')
    parts.push(`${chunk.length.toString(16)}${isSigned ? `;chunk-signature=${before}` : ''}\r\n`, chunk)
    if (chunk.length > 0) parts.push('\r\n')
  }
  if (trailer) {
    const sum = Buffer.alloc(4)
    sum.writeUInt32BE(crc32(harm === 'checksum' ? 'another' : content))
    const line = `x-amz-checksum-crc32:${sum.toString('base64')}`
    parts.push(`${line}\r\n`)
    const text = ['AWS4-HMAC-SHA256-TRAILER', signer.datetime, scope, before, sha(`${line}\n`)].join('\n')
    const signature = hmac(harm === 'trailer' ? 'another' : key, text).toString('hex')
    if (isSigned) parts.push(`x-amz-trailer-signature:${signature}\r\n`)
  }
  parts.push('\r\n')
  let sent = Buffer.concat(parts.map((part) => Buffer.from(part)))
  if (harm === 'cut') sent = sent.subarray(0, 100_000)
  if (harm === 'chunk') sent[50_000]! ^= 1
  const length = content.length + (harm === 'length' ? 1 : 0)
  const more = { 'content-encoding': 'aws-chunked', 'x-amz-decoded-content-length': String(length) }
  return await send(uploads, { ...asked, sent, headers: more }, headers)
}
