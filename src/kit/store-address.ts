// Reads the address of an object store from one setting: `file:///absolute/path` or
// `s3://bucket/prefix?endpoint=URL&region=NAME`.
import { isAbsolute, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

export type S3Address = {
  kind: 's3'
  endpoint: URL
  region: string
  bucket: string
  /** Prefix of every key in the store: empty, or ends in a slash. */
  prefix: string
  accessKey: string
  secret: string
}

export type StoreAddress = { kind: 'directory'; path: string } | S3Address

type StoreSettings = { address: string; accessKey: string | undefined; secret: string | undefined }

const bucketName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const prefixName = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/
const regionName = /^[a-z0-9-]{1,40}$/

const readS3 = ({ hostname, pathname, searchParams: query }: URL): Omit<S3Address, 'accessKey' | 'secret'> | string => {
  const unknown = [...query.keys()].find((name) => name !== 'endpoint' && name !== 'region')
  if (unknown !== undefined) return `knows no "${unknown}", only endpoint and region`
  const prefix = pathname.replace(/^\/|\/$/g, '')
  const region = query.get('region') ?? 'us-east-1'
  const endpoint = query.get('endpoint') ?? `https://s3.${region}.amazonaws.com`
  if (!bucketName.test(hostname)) return 'names no bucket: s3://bucket/prefix'
  if (prefix !== '' && !prefixName.test(prefix)) return 'has a prefix with more than letters, digits, dots, - and _'
  if (!regionName.test(region)) return 'has a region with more than small letters, digits and -'
  const at = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isPlain = at !== undefined && at.pathname === '/' && at.search === '' && at.hash === '' && at.username === ''
  if (!isPlain || !/^https?:$/.test(at.protocol)) return 'has an endpoint that is no http(s)://host[:port]'
  return { kind: 's3', endpoint: at, region, bucket: hostname, prefix: prefix === '' ? '' : `${prefix}/` }
}

const readPath = (url: URL): string | undefined => {
  if (url.host !== '' || url.search !== '' || url.hash !== '' || /%00/.test(url.pathname)) return undefined
  try {
    const path = normalize(fileURLToPath(url))
    return isAbsolute(path) && path !== '/' ? path : undefined
  } catch {
    return undefined
  }
}

/** Returns the address of the store. If it is wrong, returns a text that the caller puts after the name of the setting. */
export const readStoreAddress = ({ address, accessKey, secret }: StoreSettings): StoreAddress | string => {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === 'file:') {
    const path = readPath(url)
    return path === undefined ? 'must be file:///absolute/path' : { kind: 'directory', path }
  }
  if (url?.protocol !== 's3:') return 'must begin with file:/// or s3://'
  // Refuse an address that contains a key, because the address is logged and shown.
  if (url.username !== '' || url.password !== '') return 'must not hold a key: it has settings of its own'
  const s3 = readS3(url)
  if (typeof s3 === 'string') return s3
  if (!accessKey || !secret) return 'is S3, so ALCOVE_ARCHIVE_S3_KEY and ALCOVE_ARCHIVE_S3_SECRET must be set'
  return { ...s3, accessKey, secret }
}
