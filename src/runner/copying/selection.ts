// Selects the files that one COPY or ADD writes into the image (docs.docker.com/reference/dockerfile/#copy).
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
  /** Absolute path. It is a directory if it ends with a slash or if there are several sources. */
  destination: string
  mode?: number | undefined
  /** True: unpack an archive that a source names itself. An archive inside a copied directory stays a file. */
  unpacks: boolean
  /** Patterns, as in `.dockerignore`, of files to leave out below each source. */
  excludes?: readonly string[]
  /** True: create the directories above a source too, beginning after `/./` if the source contains that. */
  keepsParents?: boolean
  /** True: the line names an owner, which replaces the files' own owners. */
  isOwned?: boolean
}

type CreatedEntry =
  | { type: 'directory'; path: string; mode: number; uid?: number; gid?: number }
  | { type: 'link'; path: string; target: string; uid?: number; gid?: number }

export type WantedFile = { path: string; mode: number; modifiedSeconds: number; uid?: number; gid?: number }

const keyOf = ({ tar, file }: Pick<Content, 'tar' | 'file'>): string => `${tar}:${file}`

/** Wanted files by tar and number in the tar. A file that is wanted twice is written once and hard-linked. */
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
  /** Directories and links, in an order in which they can be created. */
  made: readonly CreatedEntry[]
  files: WantedFiles
  /** Files to unpack if they are archives. A file may also be in `files`, if its directory is copied too. */
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

/** Converts text of a definition into the form of names in a tar: one character per byte. */
export const asBytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1')

/** `below`: the directories that `--parents` keeps, with a slash at the end. Empty without `--parents`. */
type SourceMatch = { node: TreeNode; name: string; below: string }

/** The part of a source that `--parents` does not keep: everything before `/./`. */
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
  // `..` in a source never leads above the root of the tree.
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
  /** Whether the image has a directory at the destination. */
  isDirectory: boolean,
  signal: AbortSignal,
): Promise<Selection> => {
  const made: CreatedEntry[] = []
  const links: CreatedEntry[] = []
  const [files, unpacked] = [new WantedFiles(), new WantedFiles()]
  let [fileCount, bytes] = [0, 0]
  const to = asBytes(destination).replace(/\/+$/, '') || '/'
  const below = (directory: string, name: string) => (directory === '/' ? `/${name}` : `${directory}/${name}`)

  /** Bounds the number of matches, because patterns may match one file many times. */
  const checkCount = (count = made.length + links.length + fileCount) => {
    if (count > 2 * mostEntries) throw new ImageFailed('too-many-files', 'it means too many files')
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
        // A directory that is left out is entered if a pattern begins with `!`, because that pattern may include something below.
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
