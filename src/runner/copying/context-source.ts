// Reads from the object store the files that came with a definition. They are never written to a disk of this host.

import { createHash } from 'node:crypto'
import { EventLoopTurns } from '#src/kit/yield.ts'
import type { Definition } from '#src/wire/runner-link.ts'
import { ArchiveFailed } from '../archive/failed.ts'
import type { ContextStore } from '../contexts/store.ts'
import type { Table } from '../contexts/table.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { ignoredIn, Patterns } from './patterns.ts'
import { WantedFiles } from './selection.ts'
import type { Contents, CopySource } from './source.ts'
import { readTar } from './tar-reader.ts'
import { type DirectoryNode, Tree } from './tree.ts'

type Parts = { contexts: ContextStore; of: NonNullable<Definition['contexts']>; signal: AbortSignal }

const ignoreFile = '.dockerignore'
const largestIgnoreFile = 64 * 1024

export class ContextSource implements CopySource {
  readonly place = 'among the files that came with the definition'
  readonly #parts: Parts
  readonly #tables: Table[] = []
  #tree: Tree | undefined

  private constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Opens the files that came with a definition. Throws if one of them is not in the object store. */
  static async open(parts: Parts): Promise<ContextSource> {
    const source = new ContextSource(parts)
    const { contexts, of } = parts
    for (const hash of of.hashes) {
      const table = await storeErrors(() => contexts.find({ organizationId: of.organizationId, hash }))
      if (table === undefined)
        throw new ImageFailed(
          'not-found',
          `The files ${hash} are not on the server. Upload them, and build the image again.`,
        )
      source.#tables.push(table)
    }
    return source
  }

  async tree(): Promise<Tree> {
    this.#tree ??= await this.#readTree()
    return this.#tree
  }

  async *contents(files: WantedFiles): AsyncGenerator<Contents> {
    const turns = new EventLoopTurns(this.#parts.signal)
    for (const tar of [...files.tars].sort((a, b) => a - b)) {
      let file = -1
      for await (const { entry, contents } of readTar(this.#read(tar), turns)) {
        this.#parts.signal.throwIfAborted()
        file += 1
        const wanted = files.get({ tar, file })
        if (wanted !== undefined) yield { wanted, size: entry.size, pieces: contents }
      }
    }
  }

  async *#read(tar: number): AsyncGenerator<Buffer> {
    const { contexts, of, signal } = this.#parts
    const hash = of.hashes[tar] as string
    const pieces = contexts.read({ organizationId: of.organizationId, hash }, this.#tables[tar] as Table, signal)
    try {
      yield* pieces
    } catch (error) {
      throw asSaid(error)
    }
  }

  async #readTree(): Promise<Tree> {
    const tree = new Tree()
    const turns = new EventLoopTurns(this.#parts.signal)
    for (const tar of this.#tables.keys()) {
      let file = 0
      for await (const { entry, contents } of readTar(this.#read(tar), turns)) {
        const hash = createHash('sha256')
        for await (const piece of contents) hash.update(piece)
        tree.add(entry, { tar, file, digest: hash.digest('base64') })
        file += 1
      }
    }
    const patterns = new Patterns(ignoredIn(await this.#ignoreFileIn(tree)))
    await removeIgnored(tree.root, patterns, turns)
    return tree
  }

  async #ignoreFileIn(tree: Tree): Promise<string> {
    const node = tree.root.children.get(ignoreFile)
    if (node?.kind !== 'file') return ''
    if (node.content.size > largestIgnoreFile)
      throw new ImageFailed('unsupported', `${ignoreFile} is longer than ${largestIgnoreFile / 1024} KiB.`)
    const wanted = new WantedFiles()
    wanted.add(node.content, { path: '', mode: 0, modifiedSeconds: 0 })
    const read: Buffer[] = []
    for await (const { pieces } of this.contents(wanted)) for await (const piece of pieces) read.push(piece)
    // Latin-1 makes one character of each byte. Names in a tar are decoded in the same way, so that patterns of `.dockerignore`
    // match these names.
    return Buffer.concat(read).toString('latin1')
  }
}

const removeIgnored = async (root: DirectoryNode, patterns: Patterns, turns: EventLoopTurns): Promise<void> => {
  const visit = async (directory: DirectoryNode, path: string): Promise<void> => {
    for (const [name, child] of directory.children) {
      await turns.next()
      const own = path === '' ? name : `${path}/${name}`
      const isLeftOut = patterns.leaveOut(own)
      if (!isLeftOut && child.kind !== 'directory') continue
      if (child.kind === 'directory' && (!isLeftOut || patterns.hasExceptions)) await visit(child, own)
      if (isLeftOut && !(child.kind === 'directory' && child.children.size > 0 && patterns.hasExceptions))
        directory.children.delete(name)
    }
  }
  await visit(root, '')
}

/**
 * Turns an error of the object store into an error for the caller. If files are damaged, the caller can upload them again. After
 * any other error, the operator has to repair the store.
 */
const asSaid = (error: unknown): unknown => {
  if (!(error instanceof ArchiveFailed)) return error
  const isDamaged = error.why === 'missing' || error.why === 'damaged'
  return isDamaged
    ? new ImageFailed(
        'corrupted',
        'The uploaded files are damaged in the object store. Upload them, and build the image again.',
        { cause: error },
      )
    : new ImageFailed('failed', 'The object store does not work at the moment. Try again later.', { cause: error })
}

const storeErrors = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    throw asSaid(error)
  }
}
