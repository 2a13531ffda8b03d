// Stores objects in a bucket of an S3 server, over HTTP with version 4 signatures. Each request contains the hash of its body,
// so a changed body is rejected.
import { createHash } from 'node:crypto'
import { AwsV4Signer } from 'aws4fetch'
import { Agent, request } from 'undici'
import { readWhole } from '#src/kit/read-whole.ts'
import type { S3Address } from '#src/kit/store-address.ts'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore, StoredObject } from './store.ts'

type Method = 'GET' | 'PUT' | 'DELETE'

type Question = {
  method: Method
  /** Key of the object, without the object store's prefix. Absent: the request is about the bucket itself. */
  key?: string
  query?: Record<string, string>
  body?: Uint8Array
  /** Maximum size in bytes of the server's answer. */
  limit: number
  signal?: AbortSignal | undefined
}

type Answer = { status: number; body: Buffer }

const connections = 16
const waitMs = 30_000
const wholeMs = 180_000
const errorLimit = 64 * 1024
const listLimit = 8 * 1024 * 1024

const textIn = (xml: string, tag: string): string | undefined => {
  const found = new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(xml)?.[1]
  const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
  return found?.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => entities[name]!)
}

const isList = (xml: string) => xml.includes('<ListBucketResult') && xml.trimEnd().endsWith('</ListBucketResult>')

/** Returns the server's error code, such as `NoSuchBucket`. Undefined if the code has characters that are not safe to show. */
const codeIn = (xml: string) => /^\w{1,60}$/.exec(textIn(xml, 'Code') ?? '')?.[0]

const tooLarge = () =>
  new ArchiveFailed('damaged', 'The archive is damaged: one of its objects is larger than Alcove writes.')

export class S3Store implements ObjectStore {
  readonly #at: S3Address
  readonly #pageSize: number
  readonly #agent = new Agent({
    connections,
    connect: { timeout: 10_000 },
    headersTimeout: waitMs,
    bodyTimeout: waitMs,
  })
  /** Cache of derived keys for signing, which change once a day. */
  readonly #derived = new Map<string, ArrayBuffer>()

  constructor(at: S3Address, pageSize = 1000) {
    this.#at = at
    this.#pageSize = pageSize
  }

  get #name() {
    return `The archive store (bucket ${this.#at.bucket} at ${this.#at.endpoint.host})`
  }

  async put(key: string, content: Uint8Array, signal?: AbortSignal) {
    await this.#ask({ method: 'PUT', key, body: content, limit: errorLimit, signal })
  }

  async get(key: string, limit: number, signal?: AbortSignal) {
    return (await this.#ask({ method: 'GET', key, limit: Math.max(limit, errorLimit), signal }))?.body
  }

  async remove(key: string, signal?: AbortSignal) {
    await this.#ask({ method: 'DELETE', key, limit: errorLimit, signal })
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject> {
    const whole = `${this.#at.prefix}${prefix}`
    let from: string | undefined
    for (;;) {
      const query = { 'list-type': '2', 'encoding-type': 'url', prefix: whole, 'max-keys': `${this.#pageSize}` }
      const more = from === undefined ? query : { ...query, 'continuation-token': from }
      const answer = await this.#ask({ method: 'GET', query: more, limit: listLimit, signal })
      if (answer === undefined) throw new ArchiveFailed('store refused', `${this.#name} has no such bucket.`)
      const xml = answer.body.toString()
      if (!isList(xml)) throw this.#noList()
      for (const [, item = ''] of xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)) {
        // The server encodes some characters of keys. In Alcove's keys, only the slash can be encoded.
        const key = (textIn(item, 'Key') ?? '').replaceAll(/%2F/gi, '/')
        if (key.startsWith(whole)) yield { key: key.slice(this.#at.prefix.length), bytes: Number(textIn(item, 'Size')) }
      }
      if (textIn(xml, 'IsTruncated') !== 'true') return
      const next = textIn(xml, 'NextContinuationToken')
      if (next === undefined || next === from) throw this.#noList()
      from = next
    }
  }

  /** Callers treat an object that is not in a list as removed, so an incomplete list must not be used. */
  #noList() {
    return new ArchiveFailed('store down', `${this.#name} does not work: it answered with an invalid list of objects.`)
  }

  close() {
    return this.#agent.close()
  }

  /** Sends a request and returns the answer. Undefined if the object does not exist. Throws for any other error. */
  async #ask(question: Question): Promise<Answer | undefined> {
    const answer = await this.#send(question)
    if (answer.status >= 200 && answer.status < 300) return answer
    const code = codeIn(answer.body.toString()) ?? `HTTP ${answer.status}`
    if (answer.status === 404 && code !== 'NoSuchBucket') return undefined
    if (answer.status === 507) throw new ArchiveFailed('store full', `${this.#name} is full: ${code}.`)
    if (answer.status >= 500 || answer.status === 429 || code === 'RequestTimeout') {
      throw new ArchiveFailed('store down', `${this.#name} does not work: ${code}.`)
    }
    throw new ArchiveFailed('store refused', `${this.#name} refuses: ${code}.`)
  }

  async #send({ method, key, query = {}, body, limit, signal }: Question): Promise<Answer> {
    const { endpoint, bucket, prefix } = this.#at
    const url = new URL(key === undefined ? `/${bucket}` : `/${bucket}/${prefix}${key}`, endpoint)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const signed = await this.#sign(method, url, body)
    const bounded = AbortSignal.any([AbortSignal.timeout(wholeMs), ...(signal ? [signal] : [])])
    try {
      const answer = await request(url, {
        method,
        headers: signed,
        body: body ?? null,
        dispatcher: this.#agent,
        signal: bounded,
      })
      return { status: answer.statusCode, body: await readWhole(answer.body, limit, tooLarge) }
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof ArchiveFailed) throw error
      const said = error instanceof Error && 'code' in error ? String(error.code) : 'it took too long'
      throw new ArchiveFailed('store down', `${this.#name} cannot be reached: ${said}.`, { cause: error })
    }
  }

  async #sign(method: Method, url: URL, body: Uint8Array | undefined): Promise<Record<string, string>> {
    const { accessKey, secret, region } = this.#at
    const { headers } = await new AwsV4Signer({
      method,
      url: url.href,
      headers: {
        'X-Amz-Content-Sha256': createHash('sha256')
          .update(body ?? '')
          .digest('hex'),
      },
      accessKeyId: accessKey,
      secretAccessKey: secret,
      service: 's3',
      region,
      cache: this.#derived,
    }).sign()
    return Object.fromEntries(headers)
  }
}
