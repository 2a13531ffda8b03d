// Asks a runner to store and to list contexts: the tars with the files for COPY in a Dockerfile (wire/gate-link.ts).
import { Problem } from '#src/problems.ts'
import type { StoredContext } from '#src/wire/contexts.ts'
import type { GateRequest } from '#src/wire/gate-link.ts'
import type { RunnerLink } from '../runner-link.ts'
import { refusalOf, S3Refusal } from './refusal.ts'

export type Key = { organizationId: string; hash: string }

type Link = Pick<RunnerLink, 'ask'>

const checkUpload = (uploadId: string) => {
  if (!/^[0-9a-f]{32}$/.test(uploadId)) throw new S3Refusal('NoSuchUpload', 'There is no such upload.')
}

/** Matches 0 to 64 lower-case hex characters. The name of a context is a hash, so its beginning always has this form. */
const beginningOfHash = /^[0-9a-f]{0,64}$/

export class ContextKeeper {
  readonly #link: Link

  constructor(link: Link) {
    this.#link = link
  }

  async list(organizationId: string, beginning: string): Promise<StoredContext[]> {
    if (!beginningOfHash.test(beginning)) return []
    return await this.#ask({ ask: 'list-contexts', organizationId, beginning })
  }

  put({ organizationId, hash }: Key, body: AsyncIterable<Buffer>): Promise<StoredContext> {
    return this.#ask({ ask: 'put-context', organizationId, hash }, body)
  }

  begin({ organizationId, hash }: Key): Promise<{ uploadId: string }> {
    return this.#ask({ ask: 'begin-upload', organizationId, hash })
  }

  putPart(key: Key, uploadId: string, part: number, body: AsyncIterable<Buffer>): Promise<{ etag: string }> {
    checkUpload(uploadId)
    const { organizationId, hash } = key
    return this.#ask({ ask: 'put-part', organizationId, hash, uploadId, part }, body)
  }

  complete(key: Key, uploadId: string, parts: readonly { number: number; etag: string }[]): Promise<StoredContext> {
    checkUpload(uploadId)
    const { organizationId, hash } = key
    return this.#ask({ ask: 'complete-upload', organizationId, hash, uploadId, parts: [...parts] })
  }

  async abort({ organizationId, hash }: Key, uploadId: string): Promise<void> {
    checkUpload(uploadId)
    await this.#ask({ ask: 'abort-upload', organizationId, hash, uploadId })
  }

  /** Sends a request to the runner. If reading `body` fails, throws the error of `body`. */
  async #ask<T>(request: GateRequest, body?: AsyncIterable<Buffer>): Promise<T> {
    const failed: { with?: unknown } = {}
    try {
      return await this.#link.ask<T>(request, body && noting(body, failed))
    } catch (error) {
      if ('with' in failed) throw failed.with
      if (error instanceof Problem) throw refusalOf(error.status, error.message)
      throw new S3Refusal('ServiceUnavailable', 'The files cannot be stored now. Try again later.', { cause: error })
    }
  }
}

async function* noting(body: AsyncIterable<Buffer>, failed: { with?: unknown }) {
  try {
    yield* body
  } catch (error) {
    failed.with = error
    throw error
  }
}
