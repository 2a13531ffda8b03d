// The XML documents that S3 clients send and expect.
import { escaped } from '#src/kit/escape.ts'
import { contextBucket, mostParts, type StoredContext } from '#src/wire/contexts.ts'
import { S3Refusal } from './refusal.ts'

const head = '<?xml version="1.0" encoding="UTF-8"?>\n'
const namespace = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

/** Escapes text for XML, and drops all characters except printable ASCII, because XML does not allow some other characters. */
const text = (value: string) => escaped(value.replace(/[^\x20-\x7e]/g, ''))
const tag = (name: string, value: string | number | boolean) => `<${name}>${text(String(value))}</${name}>`

export const errorXml = (code: string, message: string, requestId: string) =>
  `${head}<Error>${tag('Code', code)}${tag('Message', message)}${tag('RequestId', requestId)}</Error>`

type ListResult = {
  prefix: string
  maxKeys: number
  contents: readonly (StoredContext & { key: string })[]
  isTruncated: boolean
}

export const listXml = ({ prefix, maxKeys, contents, isTruncated }: ListResult) => {
  const rows = contents.map(
    ({ key, bytes, etag, storedAt }) =>
      `<Contents>${tag('Key', key)}${tag('LastModified', storedAt)}${tag('ETag', `"${etag}"`)}${tag('Size', bytes)}<StorageClass>STANDARD</StorageClass></Contents>`,
  )
  const next = isTruncated ? tag('NextContinuationToken', contents.at(-1)?.key ?? '') : ''
  return `${head}<ListBucketResult ${namespace}>${tag('Name', contextBucket)}${tag('Prefix', prefix)}${tag('KeyCount', contents.length)}${tag('MaxKeys', maxKeys)}${tag('IsTruncated', isTruncated)}${next}${rows.join('')}</ListBucketResult>`
}

export const beginXml = (key: string, uploadId: string) =>
  `${head}<InitiateMultipartUploadResult ${namespace}>${tag('Bucket', contextBucket)}${tag('Key', key)}${tag('UploadId', uploadId)}</InitiateMultipartUploadResult>`

export const completeXml = (key: string, etag: string) =>
  `${head}<CompleteMultipartUploadResult ${namespace}>${tag('Bucket', contextBucket)}${tag('Key', key)}${tag('ETag', `"${etag}"`)}</CompleteMultipartUploadResult>`

/** Returns the parts that a client lists when it completes an upload. Sizes and contents were checked when the parts arrived. */
export const partsIn = (xml: string): { number: number; etag: string }[] => {
  const parts = [...xml.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = '']) => ({
    number: Number(/<PartNumber>\s*(\d{1,6})\s*<\/PartNumber>/.exec(part)?.[1] ?? Number.NaN),
    etag: /<ETag>\s*(?:"|&quot;|&#34;)?([0-9a-f]{32})(?:"|&quot;|&#34;)?\s*<\/ETag>/.exec(part)?.[1] ?? '',
  }))
  if (parts.length > mostParts || parts.some(({ number }) => number < 1 || number > mostParts))
    throw new S3Refusal(
      'InvalidRequest',
      `An upload has at most ${mostParts} parts, with numbers from 1 to ${mostParts}.`,
    )
  if (parts.length === 0 || parts.some(({ number, etag }) => Number.isNaN(number) || etag === ''))
    throw new S3Refusal('MalformedXML', 'Each part of the upload must have a PartNumber and an ETag.')
  return parts
}
