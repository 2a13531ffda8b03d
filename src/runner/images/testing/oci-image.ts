// For tests: images made byte by byte, so that they can contain every error that a caller's image may have.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'

export type TarEntry = {
  path: string
  /** Type of the entry as tar encodes it: 0 file, 1 hard link, 2 symbolic link, 3 and 4 devices, 5 directory. */
  type?: '0' | '1' | '2' | '3' | '4' | '5'
  content?: Buffer | string
  target?: string
  mode?: number
  uid?: number
  gid?: number
  /** Modification time, in seconds since 1970. */
  mtime?: number
  /** Size in the header, if it has to differ from the size of the content. */
  size?: number
  attributes?: Record<string, Buffer>
}

const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`

/** Largest user id that fits into a tar header. A larger id is in an extended header before the tar header. */
const largestId = 0o7777777

const header = (entry: TarEntry, size: number) => {
  const { path, type = '0', mode = type === '5' ? 0o755 : 0o644, uid = 0, gid = 0, mtime = 0, target = '' } = entry
  const block = Buffer.alloc(512)
  block.write(path, 0, 100)
  block.write(octal(mode, 8), 100)
  block.write(octal(uid > largestId ? 0 : uid, 8), 108)
  block.write(octal(gid > largestId ? 0 : gid, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(mtime, 12), 136)
  block.write(type, 156)
  block.write(target, 157, 100)
  block.write('ustar\x0000', 257)
  if (type === '3' || type === '4') block.write(`${octal(1, 8)}${octal(3, 8)}`, 329)
  return withSum(block)
}

const withSum = (block: Buffer) => {
  block.write('        ', 148)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

const padding = (content: Buffer) => Buffer.alloc((512 - (content.length % 512)) % 512)

/** Makes one line of an extended header (pax(1)): the line's length as a decimal number, a name and a value. */
const paxRecord = (name: string, value: Buffer) => {
  const rest = Buffer.concat([Buffer.from(` ${name}=`), value, Buffer.from('\n')])
  let length = rest.length
  while (length !== String(length).length + rest.length) length = String(length).length + rest.length
  return Buffer.concat([Buffer.from(String(length)), rest])
}

/** Makes the extended header of an entry. The extended header contains the values that do not fit into the entry's own header. */
const paxOf = ({ path, uid = 0, gid = 0, attributes = {} }: TarEntry): Buffer[] => {
  const ids = Object.entries({ uid, gid }).filter(([, id]) => id > largestId)
  const content = Buffer.concat([
    ...ids.map(([name, id]) => paxRecord(name, Buffer.from(String(id)))),
    ...Object.entries(attributes).map(([name, value]) => paxRecord(`SCHILY.xattr.${name}`, value)),
  ])
  if (content.length === 0) return []
  const before = header({ path: `PaxHeaders/${path}`.slice(0, 100) }, content.length)
  before.write('x', 156)
  return [withSum(before), content, padding(content)]
}

export const tarOf = (entries: readonly TarEntry[]): Buffer => {
  const blocks = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '')
    const own = [...paxOf(entry), header(entry, entry.size ?? content.length), content, padding(content)]
    if (entry.path.length <= 100) return own
    // Like GNU tar, writes a long name as the content of a separate entry before the file's entry.
    const name = Buffer.from(`${entry.path}\0`)
    const before = header({ path: '././@LongLink' }, name.length)
    before.write('L', 156)
    return [withSum(before), name, padding(name), ...own]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

export const digestOf = (bytes: Buffer | string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export type TestImage = {
  digest: string
  manifest: Buffer
  blobs: Map<string, Buffer>
  layers: string[]
}

type ImageParts = {
  layers: readonly Buffer[]
  config?: Record<string, unknown>
  architecture?: string
  os?: string
  layerKind?: string
  /** Digests of the unpacked layers that the configuration states (`diff_ids`). Default: the real digests. */
  diffIds?: readonly string[]
  /** Compresses a layer in another way than plain gzip or zstd. */
  pack?: (layer: Buffer) => Buffer
}

const packedAs = (layerKind: string) => (layer: Buffer) =>
  layerKind.endsWith('+zstd') ? zstdCompressSync(layer) : gzipSync(layer, { level: 1 })

const ours = process.arch === 'x64' ? 'amd64' : process.arch

export const makeImage = ({
  layers,
  config = {},
  architecture = ours,
  os = 'linux',
  layerKind = 'layer.v1.tar+gzip',
  diffIds,
  pack = packedAs(layerKind),
}: ImageParts): TestImage => {
  const blobs = new Map<string, Buffer>()
  const add = (bytes: Buffer, mediaType: string) => {
    blobs.set(digestOf(bytes), bytes)
    return { mediaType: `application/vnd.oci.image.${mediaType}`, digest: digestOf(bytes), size: bytes.length }
  }
  const packed = layers.map((layer) => add(pack(layer), layerKind))
  const rootfs = { type: 'layers', diff_ids: diffIds ?? layers.map((layer) => digestOf(layer)) }
  const described = add(Buffer.from(JSON.stringify({ architecture, os, config, rootfs })), 'config.v1+json')
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: described, layers: packed }))
  return { digest: digestOf(manifest), manifest, blobs, layers: packed.map(({ digest }) => digest) }
}

type IndexEntry = { image: TestImage; os?: string; architecture?: string; more?: Record<string, unknown> }

/** Makes the manifest of something that is not an image, such as a chart or a signature. */
export const makeArtifact = (fields: Record<string, unknown>): TestImage => {
  const blobs = new Map<string, Buffer>()
  const add = (bytes: Buffer, mediaType: string) => {
    blobs.set(digestOf(bytes), bytes)
    return { mediaType, digest: digestOf(bytes), size: bytes.length }
  }
  const empty = add(Buffer.from('{}'), 'application/vnd.oci.empty.v1+json')
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const manifest = Buffer.from(
    JSON.stringify({ schemaVersion: 2, mediaType, config: empty, layers: [empty], ...fields }),
  )
  return { digest: digestOf(manifest), manifest, blobs, layers: [empty.digest] }
}

/** Makes an index: a list of images, such as one image for each of several platforms. */
export const makeIndex = (entries: readonly IndexEntry[]): TestImage => {
  const manifests = entries.map(({ image, os, architecture, more = {} }) => ({
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    digest: image.digest,
    size: image.manifest.length,
    ...(os === undefined ? {} : { platform: { os, architecture } }),
    ...more,
  }))
  const mediaType = 'application/vnd.oci.image.index.v1+json'
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, manifests }))
  return { digest: digestOf(manifest), manifest, blobs: new Map(), layers: [] }
}

export const writeLayout = (image: TestImage, directory: string): void => {
  const blobs = join(directory, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  for (const [digest, bytes] of [...image.blobs, [image.digest, image.manifest] as const])
    writeFileSync(join(blobs, digest.slice(7)), bytes)
  const mediaType = 'application/vnd.oci.image.manifest.v1+json'
  const entry = { mediaType, digest: image.digest, size: image.manifest.length }
  writeFileSync(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
}
