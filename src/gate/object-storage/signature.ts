// Checks the signature of a call (AWS Signature Version 4): signs the call again with the secret that control knows, and compares.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AwsV4Signer } from 'aws4fetch'
import { S3Refusal } from './refusal.ts'

export type SignedCall = {
  accessKey: string
  sessionToken: string
  region: string
  /** When the caller signed the call: the value of the header `x-amz-date`. */
  datetime: string
  signedHeaders: readonly string[]
  signature: string
  /** Value of the header `x-amz-content-sha256`: the hash of the body, or how the body is sent, for example `UNSIGNED-PAYLOAD`. */
  payload: string
}

/**
 * Values with which the signatures of a body's chunks are checked. `signature`: the signature of the call, from which the
 * signature of the first chunk is computed.
 */
export type SigningKey = { key: Buffer; scope: string; datetime: string; signature: string }

const shape =
  /^AWS4-HMAC-SHA256 Credential=([\w-]{1,128})\/(\d{8})\/([\w-]{1,64})\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]{1,2000}), ?Signature=([0-9a-f]{64})$/
const skewMs = 15 * 60_000
/** Headers that must be signed; otherwise a signature would also be valid for another body, server or day. */
const alwaysSigned = ['host', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token']

const textOf = (value: string | string[] | undefined): string => (typeof value === 'string' ? value : '')

const timeOf = (datetime: string): number => {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(datetime) ?? []
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
}

/** Reads the signature of a call without verifying it. Throws if the signature is missing or malformed. */
export const readSignedCall = ({ headers }: IncomingMessage, now: number): SignedCall => {
  const [, accessKey = '', date, region = '', names = '', signature = ''] =
    shape.exec(headers.authorization ?? '') ?? []
  if (accessKey === '') throw new S3Refusal('AccessDenied', 'The call must be signed in its Authorization header.')
  const signedHeaders = names.split(';')
  const unsigned = alwaysSigned.find((name) => !signedHeaders.includes(name) || textOf(headers[name]) === '')
  if (unsigned !== undefined) throw new S3Refusal('AccessDenied', `The call must have and sign the header ${unsigned}.`)
  const datetime = textOf(headers['x-amz-date'])
  const time = timeOf(datetime)
  if (!(Math.abs(now - time) <= skewMs) || !datetime.startsWith(date as string))
    throw new S3Refusal('RequestTimeTooSkewed', 'The clocks of caller and server differ too much.')
  return {
    accessKey,
    sessionToken: textOf(headers['x-amz-security-token']),
    region,
    datetime,
    signedHeaders,
    signature,
    payload: textOf(headers['x-amz-content-sha256']),
  }
}

export const checkSignature = async (
  request: IncomingMessage,
  call: SignedCall,
  secret: string,
): Promise<SigningKey> => {
  const { headers, method = 'GET', url = '/' } = request
  const { accessKey, datetime, region, signedHeaders, signature } = call
  const address = `http://${headers.host}${url}`
  if (!URL.canParse(address)) throw new S3Refusal('InvalidRequest', 'The header Host is not the name of a server.')
  const cache = new Map<string, ArrayBuffer>()
  const signer = new AwsV4Signer({
    method,
    url: address,
    headers: signedHeaders
      .filter((name) => name !== 'host')
      .map((name): [string, string] => [name, textOf(headers[name])]),
    accessKeyId: accessKey,
    secretAccessKey: secret,
    service: 's3',
    region,
    datetime,
    cache,
    // Compute the signature of exactly the headers that the caller has signed, to compare it with the caller's
    // signature.
    allHeaders: true,
  })
  const expected = await signer.signature()
  if (!timingSafeEqual(Buffer.from(expected), Buffer.from(signature)))
    throw new S3Refusal('SignatureDoesNotMatch', 'The signature of this call is wrong.')
  const [key] = cache.values()
  const scope = `${datetime.slice(0, 8)}/${region}/s3/aws4_request`
  return { key: Buffer.from(key as ArrayBuffer), scope, datetime, signature }
}

const nothing = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

/** Returns the expected signature of the next chunk. `before`: the signature of the previous chunk. */
export const signatureOfChunk = ({ key, scope, datetime }: SigningKey, before: string, sha256: string): string =>
  createHmac('sha256', key)
    .update(['AWS4-HMAC-SHA256-PAYLOAD', datetime, scope, before, nothing, sha256].join('\n'))
    .digest('hex')

export const signatureOfTrailer = ({ key, scope, datetime }: SigningKey, before: string, sha256: string): string =>
  createHmac('sha256', key)
    .update(['AWS4-HMAC-SHA256-TRAILER', datetime, scope, before, sha256].join('\n'))
    .digest('hex')
