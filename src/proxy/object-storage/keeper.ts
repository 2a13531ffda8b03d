// What is asked of the runner that keeps the files: plain calls on its socket (src/runner/contexts/routes.ts).
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { readWhole } from '#src/kit/read-whole.ts'
import type { StoredContext } from '#src/wire/contexts.ts'
import type { Runners } from '../runners.ts'
import { refusalOf, S3Refusal } from './refusal.ts'

export type Key = { organizationId: string; hash: string }

const answerBytes = 8 * 1024 * 1024
const answerMs = 120_000

const tooLarge = () => new Error('the runner answered more than it can have to say')

const readJson = async (answer: IncomingMessage): Promise<unknown> =>
  JSON.parse((await readWhole(answer, answerBytes, tooLarge)).toString('utf8'))

export class Keeper {
  readonly #runners: Runners
  readonly #address: string

  constructor(runners: Runners, address: string) {
    this.#runners = runners
    this.#address = address
  }

  list(organizationId: string, beginning: string): Promise<StoredContext[]> {
    return this.#ask('GET', `/contexts/${organizationId}?beginning=${encodeURIComponent(beginning)}`)
  }

  put({ organizationId, hash }: Key, body: AsyncIterable<Buffer>): Promise<StoredContext> {
    return this.#ask('PUT', `/contexts/${organizationId}/${hash}`, body)
  }

  begin({ organizationId, hash }: Key): Promise<{ uploadId: string }> {
    return this.#ask('POST', `/contexts/${organizationId}/${hash}/uploads`)
  }

  putPart(key: Key, uploadId: string, number: number, body: AsyncIterable<Buffer>): Promise<{ etag: string }> {
    return this.#ask('PUT', `${this.#uploadOf(key, uploadId)}/${number}`, body)
  }

  complete(key: Key, uploadId: string, parts: readonly { number: number; etag: string }[]): Promise<StoredContext> {
    return this.#ask('POST', this.#uploadOf(key, uploadId), parts)
  }

  async abort(key: Key, uploadId: string): Promise<void> {
    await this.#ask('DELETE', this.#uploadOf(key, uploadId))
  }

  #uploadOf({ organizationId, hash }: Key, uploadId: string): string {
    if (!/^[0-9a-f]{32}$/.test(uploadId)) throw new S3Refusal('NoSuchUpload', 'There is no such upload.')
    return `/contexts/${organizationId}/${hash}/uploads/${uploadId}`
  }

  /** A body that fails on its way breaks off, so that for the runner it has never been sent. */
  async #ask<T>(method: string, path: string, body?: AsyncIterable<Buffer> | readonly object[]): Promise<T> {
    const json = Array.isArray(body) ? Buffer.from(JSON.stringify(body)) : undefined
    const isStreamed = body !== undefined && json === undefined
    const headers = ['Host', 'runner', 'Content-Length', String(json?.length ?? 0)]
    if (json) headers.push('Content-Type', 'application/json')
    const outgoing = this.#runners.request(this.#address, {
      method,
      path,
      headers: isStreamed
        ? ['Host', 'runner', 'Transfer-Encoding', 'chunked', 'Content-Type', 'application/octet-stream']
        : headers,
    })
    const down = (cause: unknown) => new S3Refusal('ServiceUnavailable', 'The files cannot be kept now.', { cause })
    const { promise: broken, reject } = Promise.withResolvers<never>()
    broken.catch(() => {})
    outgoing.on('error', (error) => reject(down(error)))
    const timer = setTimeout(() => outgoing.destroy(new Error('the runner did not answer')), answerMs)
    const answered = Promise.race([once(outgoing, 'response') as Promise<[IncomingMessage]>, broken])
    answered.catch(() => {})
    try {
      if (isStreamed) await this.#pour(body as AsyncIterable<Buffer>, outgoing, answered, () => timer.refresh())
      else outgoing.end(json)
      const [answer] = await answered
      const said = await readJson(answer).catch((error: unknown) => Promise.reject(down(error)))
      const status = answer.statusCode ?? 502
      if (status < 300) return said as T
      const { message } = said as { message?: unknown }
      throw refusalOf(status, typeof message === 'string' ? message : 'The files cannot be kept now.')
    } catch (error) {
      outgoing.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Returns early when the runner has answered before it has heard everything. */
  async #pour(
    body: AsyncIterable<Buffer>,
    outgoing: ReturnType<Runners['request']>,
    answered: Promise<unknown>,
    onPiece: () => void,
  ): Promise<void> {
    const over = answered.then(() => 'answered' as const)
    over.catch(() => {})
    const pieces = body[Symbol.asyncIterator]()
    for (;;) {
      // The caller may be silent, and the runner tired of it.
      const next = await Promise.race([pieces.next(), over])
      if (next === 'answered') {
        void Promise.resolve(pieces.return?.()).catch(() => {})
        return
      }
      if (next.done) break
      onPiece()
      if (!outgoing.write(next.value)) await Promise.race([once(outgoing, 'drain'), over])
    }
    outgoing.end()
  }
}
