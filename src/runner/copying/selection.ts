// Selects the files that a COPY or ADD line writes into the image (docs.docker.com/reference/dockerfile/#copy).
import { posix } from 'node:path'
import { EventLoopTurns } from '#src/kit/yield.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { Patterns } from './patterns.ts'
import {
  type Content,
  type DirectoryNode,
  type FileNode,
  isPattern,
  longestPath,
  mostEntries,
  type Tree,
  type TreeNode,
} from './tree.ts'

export type CopyRequest = {
  sources: readonly string[]
  /** Absolute path in the image. It means a directory if it ends with a slash or if there are several sources. */
  destination: string
  mode?: number | undefined
  /** Whether an archive that a source names is unpacked. An archive inside a copied directory is never unpacked. */
  unpacks: boolean
  /** Patterns of files below the sources that are not copied, in the form that `.dockerignore` has. */
  excludes?: readonly string[]
  /**
   * Whether a source's parent directories are created at the destination too (`COPY --parents`). If the path contains `/./`, only
   * the directories after `/./` are created.
   */
  keepsParents?: boolean
  /** Whether the line names an owner. That owner replaces the owners of the files. */
  isOwned?: boolean
}

type CreatedEntry =
  | { type: 'directory'; path: string; mode: number; uid?: number; gid?: number }
  | { type: 'link'; path: string; target: string; uid?: number; gid?: number }

export type WantedFile = { path: string; mode: number; modifiedSeconds: number; uid?: number; gid?: number }

const keyOf = ({ tar, file }: Pick<Content, 'tar' | 'file'>): string => `${tar}:${file}`

/**
 * The files to copy. Each has a key: the number of its tar, and its number in that tar. Further paths of a file become hard links.
 */
export class WantedFiles {
  readonly #wanted = new Map<string, [WantedFile, ...WantedFile[]]>()
  readonly #contents = new Map<string, Content>()
  readonly tars = new Set<number>()

  add(at: Content, file: WantedFile): void {
    const others = this.#wanted.get(keyOf(at))
    if (others) others.push(file)
    else this.#wanted.set(keyOf(at), [file])
    this.#contents.set(keyOf(at), at)
    this.tars.add(at.tar)
  }

  *withContents(): Generator<{ content: Content; files: readonly WantedFile[] }> {
    for (const [key, files] of this.#wanted) yield { content: this.#contents.get(key) as Content, files }
  }

  get(at: Pick<Content, 'tar' | 'file'>): [WantedFile, ...WantedFile[]] | undefined {
    return this.#wanted.get(keyOf(at))
  }

  all(): WantedFile[] {
    return [...this.#wanted.values()].flat()
  }
}

export type Selection = {
  /** Directories and links to create. Directories come first, each before the directories in it. */
  made: readonly CreatedEntry[]
  /**
   * The files that are copied and never unpacked: those inside directories that a source matches and, if `unpacks` is false, those
   * that a source matches directly.
   */
  files: WantedFiles
  /**
   * If `unpacks` is true: the files that a source matches directly. Archives among them are unpacked. If a source also matches the
   * directory of such a file, the file is in `files` too.
   */
  unpacked: WantedFiles
  fileCount: number
  bytes: number
}

export class NothingThere extends Error {
  readonly source: string

  constructor(source: string) {
    super(`there is no ${source}`)
    this.source = source
  }
}

/** Converts text of a definition for comparison with names in a tar, which have one character per byte. */
export const asBytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

/** A file or directory that a source matches. `below`: the parent directories for `COPY --parents`, with a slash at the end. */
type SourceMatch = { node: TreeNode; name: string; below: string }

/** Returns the part of a source's path before `/./`, which `COPY --parents` does not create at the destination. */
const pivotOf = (source: string): string => {
  const at = source.indexOf('/./')
  return posix.resolve('/', at < 0 ? '' : asBytes(source.slice(0, at)))
}

const findAll = async (
  tree: Tree,
  source: string,
  keepsParents: boolean,
  turns: EventLoopTurns,
): Promise<SourceMatch[]> => {
  // At the root of the files from which COPY copies, `..` has no effect.
  const path = posix.resolve('/', asBytes(source))
  if (path.length > longestPath) throw new NothingThere(source.slice(0, 100))
  const paths = isPattern(path) && tree.find(path) === undefined ? await tree.match(path, turns) : [path]
  const found: SourceMatch[] = []
  for (const each of paths) {
    await turns.next()
    const node = tree.find(each)
    if (node === undefined) continue
    const directory = keepsParents ? posix.relative(pivotOf(source), posix.dirname(each)) : ''
    found.push({ node, name: posix.basename(each), below: directory === '' ? '' : `${directory}/` })
  }
  if (found.length === 0) throw new NothingThere(source)
  return found
}

export const select = async (
  tree: Tree,
  { sources, destination, mode, unpacks, excludes = [], keepsParents = false, isOwned = false }: CopyRequest,
  /**
   * Whether the destination is a directory: it already is a directory in the image that is being built, or the line has several
   * sources.
   */
  isDirectory: boolean,
  signal: AbortSignal,
): Promise<Selection> => {
  const made: CreatedEntry[] = []
  const links: CreatedEntry[] = []
  const [files, unpacked] = [new WantedFiles(), new WantedFiles()]
  let [fileCount, bytes] = [0, 0]
  const to = asBytes(destination).replace(/\/+$/, '') || '/'
  const below = (directory: string, name: string) => (directory === '/' ? `/${name}` : `${directory}/${name}`)

  /** Called after each file that is found. Patterns may match files again and again, and unlimited lists would use all memory. */
  const checkCount = (count = made.length + links.length + fileCount) => {
    if (count > 2 * mostEntries)
      throw new ImageFailed(
        'too-many-files',
        `this line copies more than ${2 * mostEntries} files, directories and links`,
      )
  }

  const leftOut = new Patterns(excludes)
  const ownerOf = ({ owner }: TreeNode) => (isOwned || owner === undefined ? {} : owner)
  const addFile = (node: FileNode, path: string, among: WantedFiles) => {
    const { content, mode: own, modifiedSeconds } = node
    among.add(content, { path, mode: mode ?? own, modifiedSeconds, ...ownerOf(node) })
    fileCount += 1
    bytes += content.size
    checkCount()
  }
  const turns = new EventLoopTurns(signal)
  const addDirectory = async (from: DirectoryNode, root: string) => {
    const todo: [DirectoryNode, string, string][] = [[from, root, '']]
    for (let next = todo.pop(); next; next = todo.pop()) {
      await turns.next()
      const [node, path, inside] = next
      made.push({ type: 'directory', path, mode: mode ?? node.mode, ...ownerOf(node) })
      checkCount()
      for (const [name, child] of node.children) {
        const at = below(path, name)
        const own = inside === '' ? name : `${inside}/${name}`
        const isLeftOut = leftOut.leaveOut(own)
        // An excluded directory is examined anyway if a pattern begins with `!`, because that pattern may include a file in the
        // directory.
        if (isLeftOut && !(child.kind === 'directory' && leftOut.hasExceptions)) continue
        if (child.kind === 'directory') todo.push([child, at, own])
        else if (child.kind === 'link') links.push({ type: 'link', path: at, target: child.target, ...ownerOf(child) })
        else addFile(child, at, files)
      }
    }
  }

  const found: SourceMatch[] = []
  for (const source of sources) {
    await turns.next()
    for (const each of await findAll(tree, source, keepsParents, turns)) found.push(each)
    checkCount(found.length)
  }
  const isInto = destination.endsWith('/') || isDirectory || found.length > 1
  for (const { node, name, below: parents } of found) {
    await turns.next()
    if (leftOut.leaveOut(name) && node.kind === 'file') continue
    const into = parents === '' ? to : below(to, parents.slice(0, -1))
    if (node.kind === 'directory') await addDirectory(node, keepsParents && name !== '' ? below(into, name) : to)
    else if (node.kind === 'file')
      addFile(node, isInto || keepsParents ? below(into, name) : to, unpacks ? unpacked : files)
  }
  return { made: [...made, ...links], files, unpacked, fileCount, bytes }
}
