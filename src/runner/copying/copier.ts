// Carries out a COPY or ADD: the agent in the build's sandbox writes the selected files, as root of the sandbox.
import { EventLoopTurns } from '#src/kit/yield.ts'
import { AgentRefused, type Files, unpackRecord } from '#src/toolbox/agent/agent.ts'
import type { CopyStep } from '../images/definition/plan.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { asSize } from '../images/limits.ts'
import { archiveKind, headBytes, unpackedFrom } from './archives.ts'
import { asBytes, NothingThere, type Selection, select, type WantedFiles } from './selection.ts'
import type { CopySource } from './source.ts'
import { Tree } from './tree.ts'

export type Copying = {
  /** Where the files come from. Undefined if the COPY or ADD line has only here-documents and URLs. */
  source: CopySource | undefined
  files: Files
  /** The files that were downloaded from the URLs of an ADD line, in the order of the URLs. */
  fetched?: readonly Fetched[]
  /** Maximum size in bytes of one archive after decompression. */
  mostBytes: number
  signal: AbortSignal
}

export type Fetched = { name: string; size: number; modifiedSeconds: number; pieces: () => AsyncIterable<Buffer> }

const bytesOf = (text: string) => Buffer.from(text, 'latin1')

/** Copies the selected files. Returns a short summary of what was copied. */
export const copyFiles = async (copy: CopyStep['copy'], copying: Copying): Promise<string> => {
  const { source, files, fetched = [], ...bounds } = copying
  const { sources, documents, destination, owner, group } = copy
  const others = [...documents.map(asFetched), ...fetched]
  const tree = (await source?.tree(sources)) ?? new Tree()
  const there = await files.stat(destination, { followLink: true }).catch(() => undefined)
  const isDirectory = there?.type === 'directory' || sources.length + others.length > 1
  try {
    const selection = await select(tree, { ...copy, isOwned: owner !== '' }, isDirectory, bounds.signal)
    const records = recordsOf(selection, source, copy, { ...bounds, isDirectory, others })
    await files.unpack(records, { owner, group })
    const count = selection.fileCount + others.length
    const bytes = selection.bytes + others.reduce((sum, { size }) => sum + size, 0)
    return `${count} ${count === 1 ? 'file' : 'files'}, ${asSize(bytes)}`
  } catch (error) {
    if (error instanceof NothingThere)
      throw new ImageFailed('build-failed', `there is no ${error.source} ${source?.place}`)
    if (error instanceof AgentRefused && error.stage === 'user')
      throw new ImageFailed('build-failed', 'there is no such user or group in the image')
    if (error instanceof AgentRefused)
      throw new ImageFailed('build-failed', `the files cannot be written (${error.errno})`, { cause: error })
    throw error
  }
}

const asFetched = ({ name, content }: { name: string; content: string }): Fetched => {
  const bytes = Buffer.from(content)
  const modifiedSeconds = Math.floor(Date.now() / 1000)
  const pieces = async function* () {
    yield bytes
  }
  return { name, size: bytes.length, modifiedSeconds, pieces }
}

type Bounds = Pick<Copying, 'mostBytes' | 'signal'>

async function* recordsOf(
  { made, files, unpacked }: Selection,
  source: CopySource | undefined,
  copy: CopyStep['copy'],
  { isDirectory, others, ...bounds }: Bounds & { isDirectory: boolean; others: readonly Fetched[] },
): AsyncGenerator<Buffer> {
  for (const { type, path, ...each } of made)
    if (type === 'directory') yield unpackRecord({ type, path: bytesOf(path), ...withoutTarget(each) })
  if (source !== undefined) {
    yield* fileRecords(source, files)
    yield* archiveRecords(source, unpacked, copy.destination, bounds)
  }
  yield* otherRecords(others, copy, isDirectory)
  for (const each of made)
    if (each.type === 'link') yield unpackRecord({ ...each, path: bytesOf(each.path), target: bytesOf(each.target) })
}

const withoutTarget = (each: { mode?: number; uid?: number; gid?: number; target?: string }) => {
  const { target: _, ...rest } = each
  return rest
}

/** Mode of a downloaded file: only its owner may read it, as in Docker. */
const modeOfFetched = 0o600
const modeOfDocument = 0o644

async function* otherRecords(
  others: readonly Fetched[],
  { destination, mode, documents }: CopyStep['copy'],
  isDirectory: boolean,
) {
  const isInto = isDirectory || destination.endsWith('/')
  for (const [index, { name, size, modifiedSeconds, pieces }] of others.entries()) {
    if (isInto && name === '') throw new ImageFailed('build-failed', 'the URL contains no file name')
    const path = bytesOf(asBytes(isInto ? `${destination.replace(/\/+$/, '')}/${name}` : destination))
    const own = index < documents.length ? modeOfDocument : modeOfFetched
    yield unpackRecord({ type: 'file', path, mode: mode ?? own, size, modifiedSeconds })
    yield* pieces()
  }
}

async function* fileRecords(source: CopySource, files: WantedFiles): AsyncGenerator<Buffer> {
  for await (const { wanted, size, pieces } of source.contents(files)) {
    const [{ path: first, ...rest }, ...others] = wanted
    const path = bytesOf(first)
    yield unpackRecord({ type: 'file', path, ...rest, size })
    yield* pieces
    for (const other of others) yield unpackRecord({ type: 'hard link', path: bytesOf(other.path), target: path })
  }
}

/**
 * Unpacks the archives of an ADD. For each file in an archive, yields a record with path, owner and mode, and then the file's
 * content. Yields a file that is not an archive unchanged.
 */
async function* archiveRecords(
  source: CopySource,
  files: WantedFiles,
  unpackTo: string,
  { mostBytes, signal }: Bounds,
): AsyncGenerator<Buffer> {
  const turns = new EventLoopTurns(signal)
  for await (const { wanted, size, pieces: whole } of source.contents(files)) {
    const pieces = whole[Symbol.asyncIterator]()
    const head = await headOf(pieces)
    const rest = joined(head, pieces)
    const kind = archiveKind(head)
    if (kind !== undefined) {
      yield* unpackedFrom(rest, kind, unpackTo, mostBytes, turns)
      continue
    }
    const [{ path: first, ...more }, ...others] = wanted
    const path = bytesOf(first)
    yield unpackRecord({ type: 'file', path, ...more, size })
    yield* rest
    for (const other of others) yield unpackRecord({ type: 'hard link', path: bytesOf(other.path), target: path })
  }
}

/** Reads the first bytes of a stream, by which an archive is recognized. Pieces may have any size. */
const headOf = async (pieces: AsyncIterator<Buffer>): Promise<Buffer> => {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < headBytes) {
    const { done, value } = await pieces.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  return head
}

async function* joined(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}
