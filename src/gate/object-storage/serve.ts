// The part of an S3 server that clients need to upload the files of a Dockerfile (COPY). The signature is checked before the body
// is read. A call can access only the files of the caller's organization.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { findBadHead } from '#src/http/head.ts'
import type { Logger } from '#src/kit/log.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { mostParts, type UploadAccess, type UploadQuestion } from '#src/wire/contexts.ts'
import type { RunnerLink } from '../runner-link.ts'
import { bodyOf } from './body.ts'
import { ContextKeeper, type Key } from './keeper.ts'
import { type Place, readPlace } from './place.ts'
import { asRefusal, S3Refusal } from './refusal.ts'
import { checkSignature, readSignedCall } from './signature.ts'
import { beginXml, completeXml, errorXml, listXml, partsIn } from './xml.ts'

type ObjectStorageParts = {
  /** Asks control which organization's files the credentials of an upload may access. Throws control's refusal. */
  ask: (question: UploadQuestion) => Promise<UploadAccess>
  /** Returns the connection to the runner that stores the upload. */
  linkFor: (upload: UploadAccess) => Pick<RunnerLink, 'ask'>
  log: Logger
  now?: () => number
  callsPerMinute?: number
}

type Answer = { status?: number; headers?: Record<string, string>; xml?: string }

type ObjectRequest = Place & { keeper: ContextKeeper; organizationId: string; body: AsyncIterable<Buffer> }

const mostKeys = 1000
const longestDocument = 512 * 1024

const keyOf = ({ key, organizationId }: ObjectRequest): Key => {
  if (key === undefined) throw new S3Refusal('MethodNotAllowed', 'This call needs the key of an object.')
  if (key.organizationId !== organizationId)
    throw new S3Refusal('AccessDenied', 'These credentials have no access to this key or prefix.')
  return key
}

const textOf = ({ organizationId, hash }: Key) => `${organizationId}/${hash}/context.tar`

const tooLarge = () => new S3Refusal('EntityTooLarge', 'The XML document is too long.')

const drained = async (body: AsyncIterable<Buffer>): Promise<string> =>
  (await readWhole(body, longestDocument, tooLarge)).toString('utf8')

const list = async ({ query, keeper, organizationId }: ObjectRequest): Promise<Answer> => {
  const prefix = query.get('prefix') ?? ''
  const own = `${organizationId}/`
  if (!prefix.startsWith(own))
    throw new S3Refusal('AccessDenied', 'These credentials have no access to this key or prefix.')
  const asked = Number(query.get('max-keys') ?? mostKeys)
  const maxKeys = Number.isSafeInteger(asked) && asked >= 0 ? Math.min(asked, mostKeys) : mostKeys
  const [beginning = ''] = prefix.slice(own.length).split('/')
  const after = query.get('continuation-token') ?? query.get('start-after') ?? ''
  const all = (await keeper.list(organizationId, beginning))
    .map((context) => ({ ...context, key: textOf({ organizationId, hash: context.hash }) }))
    .filter(({ key }) => key.startsWith(prefix) && key > after)
  return { xml: listXml({ prefix, maxKeys, contents: all.slice(0, maxKeys), isTruncated: all.length > maxKeys }) }
}

const look = async (asked: ObjectRequest): Promise<Answer> => {
  const key = keyOf(asked)
  const [found] = await asked.keeper.list(key.organizationId, key.hash)
  if (found === undefined) throw new S3Refusal('NoSuchKey', 'There is no such object.')
  const { bytes, etag, storedAt } = found
  const modified = new Date(storedAt).toUTCString()
  return { headers: { 'Content-Length': String(bytes), ETag: `"${etag}"`, 'Last-Modified': modified } }
}

const put = async (asked: ObjectRequest): Promise<Answer> => {
  const key = keyOf(asked)
  const { query, keeper, body } = asked
  const [uploadId, number] = [query.get('uploadId'), Number(query.get('partNumber'))]
  if (uploadId === undefined) return { headers: { ETag: `"${(await keeper.put(key, body)).etag}"` } }
  if (!(Number.isSafeInteger(number) && number > 0 && number <= mostParts))
    throw new S3Refusal('InvalidRequest', `partNumber must be from 1 to ${mostParts}.`)
  return { headers: { ETag: `"${(await keeper.putPart(key, uploadId, number, body)).etag}"` } }
}

const post = async (asked: ObjectRequest): Promise<Answer> => {
  const key = keyOf(asked)
  const { query, keeper, body } = asked
  const document = await drained(body)
  if (query.has('uploads')) return { xml: beginXml(textOf(key), (await keeper.begin(key)).uploadId) }
  const uploadId = query.get('uploadId') ?? ''
  return { xml: completeXml(textOf(key), (await keeper.complete(key, uploadId, partsIn(document))).etag) }
}

const remove = async (asked: ObjectRequest): Promise<Answer> => {
  const key = keyOf(asked)
  const uploadId = asked.query.get('uploadId')
  if (uploadId === undefined)
    throw new S3Refusal('AccessDenied', 'Files cannot be deleted. Alcove removes them when nothing needs them.')
  await asked.keeper.abort(key, uploadId)
  return { status: 204 }
}

const act = async (method: string, asked: ObjectRequest): Promise<Answer> => {
  switch (method) {
    case 'GET':
      if (asked.key === undefined) return await list(asked)
      throw new S3Refusal('AccessDenied', 'Uploaded files are for building images only and cannot be downloaded.')
    case 'HEAD':
      return asked.key === undefined ? {} : await look(asked)
    case 'PUT':
      if (asked.query.has('uploadId') || [...asked.query.keys()].every((name) => name === 'x-id'))
        return await put(asked)
      throw new S3Refusal('NotImplemented', 'This operation is not supported.')
    case 'POST':
      return await post(asked)
    case 'DELETE':
      return await remove(asked)
    default:
      throw new S3Refusal('MethodNotAllowed', 'This operation is not supported.')
  }
}

export const createObjectStorage = ({
  ask,
  linkFor,
  log,
  now = Date.now,
  callsPerMinute = 1200,
}: ObjectStorageParts) => {
  const calls = new RateLimiterMemory({ points: callsPerMinute, duration: 60 })

  /** Checks a call. Until all checks have passed, nothing is changed and no byte of the body is read. */
  const judge = async (request: IncomingMessage): Promise<ObjectRequest> => {
    const complaint = findBadHead(request)
    if (complaint !== undefined) throw new S3Refusal('InvalidRequest', complaint)
    const place = readPlace(request.url ?? '/')
    const call = readSignedCall(request, now())
    const upload = await ask(call)
    const { secret, organizationId } = upload
    const key = await checkSignature(request, call, secret)
    await calls.consume(organizationId).catch(() => {
      throw new S3Refusal('SlowDown', 'Too many calls.')
    })
    const keeper = new ContextKeeper(linkFor(upload))
    return { ...place, keeper, organizationId, body: bodyOf(request, call, key) }
  }

  const refuse = (error: unknown, request: IncomingMessage, response: ServerResponse) => {
    const refusal = asRefusal(error)
    if (refusal.status >= 500) log[refusal.logLevel]({ err: error, cause: refusal.cause }, refusal.message)
    if (response.headersSent || response.destroyed) return response.destroy()
    const xml = Buffer.from(errorXml(refusal.code, refusal.message, randomUUID()))
    response.writeHead(refusal.status, {
      'Content-Type': 'application/xml',
      'Content-Length': xml.length,
    })
    return response.end(request.method === 'HEAD' ? undefined : xml)
  }

  return async (
    request: IncomingMessage,
    response: ServerResponse,
    onForward: (organizationId: string) => void,
  ): Promise<void> => {
    try {
      const asked = await judge(request)
      onForward(asked.organizationId)
      const { status = 200, headers = {}, xml } = await act(request.method ?? 'GET', asked)
      if (response.destroyed) return
      const document = xml === undefined ? undefined : Buffer.from(xml)
      response.writeHead(status, {
        'Content-Length': document?.length ?? 0,
        ...(document ? { 'Content-Type': 'application/xml' } : {}),
        ...headers,
      })
      response.end(document)
    } catch (error) {
      refuse(error, request, response)
    }
  }
}
