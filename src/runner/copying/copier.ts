// Carries out the COPY and ADD lines of one definition: the files go from the object store through this process, without
// touching a disk of this host, into the sandbox of the build, whose agent makes them as its root.
import { AgentRefused, type Files, unpackRecord } from '#src/toolbox/agent/agent.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import { ArchiveFailed } from '../archive/failed.ts'
import type { ContextStore } from '../contexts/store.ts'
import type { Table } from '../contexts/table.ts'
import type { CopyStep } from '../images/definition/plan.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { asSize } from '../images/limits.ts'
import { archiveKind, headBytes, unpackedFrom } from './archives.ts'
import { NothingThere, type Selection, select, type WantedFiles } from './selection.ts'
import { readTar } from './tar-reader.ts'
import { Tree } from './tree.ts'
import { Turns } from './turns.ts'

type Contexts = NonNullable<Definition['contexts']>

type CopierParts = {
  contexts: ContextStore
  of: Contexts
  /** Of what ADD unpacks. */
  mostBytes: number
  signal: AbortSignal
}

const bytesOf = (text: string) => Buffer.from(text, 'latin1')

export class Copier {
  readonly #parts: CopierParts
  readonly #tables: Table[] = []
  #tree: Tree | undefined

  private constructor(parts: CopierParts) {
    this.#parts = parts
  }

  /** Throws where files are named that are not in the store: before anything is built on them. */
  static async open(parts: CopierParts): Promise<Copier> {
    const copier = new Copier(parts)
    const { contexts, of } = parts
    for (const hash of of.hashes) {
      const table = await storeErrors(() => contexts.find({ organizationId: of.organizationId, hash }))
      if (table === undefined)
        throw new ImageFailed('not-found', `The files ${hash} are not here. Upload them, and make the image again.`)
      copier.#tables.push(table)
    }
    return copier
  }

  #read(tar: number): AsyncGenerator<Buffer> {
    const { contexts, of, signal } = this.#parts
    const hash = of.hashes[tar] as string
    return contexts.read({ organizationId: of.organizationId, hash }, this.#tables[tar] as Table, signal)
  }

  async #getTree(): Promise<Tree> {
    if (this.#tree) return this.#tree
    const tree = new Tree()
    const turns = new Turns(this.#parts.signal)
    for (const tar of this.#tables.keys()) {
      let file = 0
      for await (const { entry } of readTar(this.#read(tar), turns)) {
        tree.add(entry, { tar, file })
        file += 1
      }
    }
    this.#tree = tree
    return tree
  }

  /** Answers what was copied, in a few words. */
  async copy({ sources, destination, owner, group, mode, unpacks }: CopyStep['copy'], files: Files): Promise<string> {
    const tree = await storeErrors(() => this.#getTree())
    const there = await files.stat(destination, { followLink: true }).catch(() => undefined)
    try {
      const selection = await select(
        tree,
        { sources, destination, mode, unpacks },
        there?.type === 'directory',
        this.#parts.signal,
      )
      const records = this.#records(selection, destination)
      await storeErrors(() => files.unpack(records, { owner, group }))
      const { fileCount, bytes } = selection
      return `${fileCount} ${fileCount === 1 ? 'file' : 'files'}, ${asSize(bytes)}`
    } catch (error) {
      if (error instanceof NothingThere)
        throw new ImageFailed(
          'build-failed',
          `there is no ${error.source} among the files that came with the definition`,
        )
      if (error instanceof AgentRefused && error.stage === 'user')
        throw new ImageFailed('build-failed', 'there is no such user or group in the image')
      if (error instanceof AgentRefused)
        throw new ImageFailed('build-failed', `the files cannot be written (${error.errno})`, { cause: error })
      throw error
    }
  }

  async *#records({ made, files, unpacked }: Selection, destination: string): AsyncGenerator<Buffer> {
    for (const each of made) {
      if (each.type === 'directory')
        yield unpackRecord({ type: 'directory', path: bytesOf(each.path), mode: each.mode })
    }
    yield* this.#recordsOf(files)
    yield* this.#recordsOf(unpacked, destination)
    for (const each of made) {
      if (each.type === 'link')
        yield unpackRecord({ type: 'link', path: bytesOf(each.path), target: bytesOf(each.target) })
    }
  }

  /** `unpackTo`: archives among the files are unpacked there. */
  async *#recordsOf(files: WantedFiles, unpackTo?: string): AsyncGenerator<Buffer> {
    const { signal, mostBytes } = this.#parts
    const turns = new Turns(signal)
    for (const tar of [...files.tars].sort((a, b) => a - b)) {
      let file = -1
      for await (const { entry, contents } of readTar(this.#read(tar), turns)) {
        signal.throwIfAborted()
        file += 1
        const wanted = files.get({ tar, file })
        if (wanted === undefined) continue
        const [first, ...others] = wanted
        const pieces = contents[Symbol.asyncIterator]()
        const head = unpackTo === undefined ? undefined : await headOf(pieces)
        const rest = joined(head, pieces)
        const kind = head && archiveKind(head)
        if (kind !== undefined && unpackTo !== undefined) {
          yield* unpackedFrom(rest, kind, unpackTo, mostBytes, turns)
          continue
        }
        const path = bytesOf(first.path)
        yield unpackRecord({
          type: 'file',
          path,
          mode: first.mode,
          modifiedSeconds: first.modifiedSeconds,
          size: entry.size,
        })
        yield* rest
        for (const other of others) yield unpackRecord({ type: 'hard link', path: bytesOf(other.path), target: path })
      }
    }
  }
}

/** As much as says what it is, wherever its pieces are cut. */
const headOf = async (pieces: AsyncIterator<Buffer>): Promise<Buffer> => {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < headBytes) {
    const { done, value } = await pieces.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  return head
}

async function* joined(head: Buffer | undefined, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (head && head.length > 0) yield head
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
}

/** What is wrong with the store is for its operator; what was uploaded is for whoever did. */
const storeErrors = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof ArchiveFailed)) throw error
    if (error.why === 'missing' || error.why === 'damaged')
      throw new ImageFailed(
        'corrupted',
        'The files are damaged in the object store. Upload them, and make the image again.',
        {
          cause: error,
        },
      )
    throw new ImageFailed('failed', 'The object store does not work now.', { cause: error })
  }
}
