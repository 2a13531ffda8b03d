// The files that came with a definition, as a tree of names and metadata in memory. No path that a caller has chosen is opened
// on this host.
import type { EventLoopTurns } from '#src/kit/yield.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { damagedTar, type TarEntry } from './tar-reader.ts'

/** Where a file's contents are. `tar`: index among the source's tars. `file`: index in that tar. `digest`: hash, if known. */
export type Content = { tar: number; file: number; size: number; digest?: string }

/** Owner of a file, as numbers. Absent: the owner that the COPY line names, or root. */
export type Owner = { uid: number; gid: number }

export type FileNode = { kind: 'file'; mode: number; modifiedSeconds: number; content: Content; owner?: Owner }
export type LinkNode = { kind: 'link'; target: string; owner?: Owner }
export type DirectoryNode = { kind: 'directory'; mode: number; children: Map<string, TreeNode>; owner?: Owner }
export type TreeNode = FileNode | LinkNode | DirectoryNode

export const mostEntries = 200_000
export const longestPath = 3500
const mostLinks = 40

const directory = (mode = 0o755, owned: { owner?: Owner } = {}): DirectoryNode => ({
  kind: 'directory',
  mode,
  children: new Map(),
  ...owned,
})

/** Splits a path into names. Throws if the path contains `..` or a zero byte, or is too long. */
export const partsOf = (path: string): string[] => {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (
    parts.includes('..') ||
    path.includes('\0') ||
    path.length > longestPath ||
    parts.some((part) => part.length > 255)
  )
    throw damagedTar(`the path "${path.slice(0, 100)}" is too long, or contains .. or a zero byte`)
  return parts
}

export class Tree {
  readonly root = directory()
  readonly #keepsOwners: boolean
  #entries = 0

  /** `keepsOwners`: files keep the owners in the tar. Otherwise they get the owner that the COPY line names, or root. */
  constructor({ keepsOwners = false } = {}) {
    this.#keepsOwners = keepsOwners
  }

  add(entry: TarEntry, at: { tar: number; file: number; digest?: string }): void {
    this.#count()
    if (entry.target.length > longestPath)
      throw damagedTar(`the target of the link "${entry.path.slice(0, 100)}" is too long`)
    const parts = partsOf(entry.path)
    const name = parts.pop()
    if (name === undefined) return
    const { mode, modifiedSeconds, size, uid, gid } = entry
    const owned = this.#keepsOwners ? { owner: { uid, gid } } : {}
    const above = this.#directoryAt(parts)
    const there = above.children.get(name)
    switch (entry.type) {
      case 'directory':
        if (there?.kind === 'directory') Object.assign(there, { mode, ...owned })
        else above.children.set(name, directory(mode, owned))
        break
      case 'link':
        above.children.set(name, { kind: 'link', target: entry.target, ...owned })
        break
      case 'file':
        above.children.set(name, { kind: 'file', mode, modifiedSeconds, content: { ...at, size }, ...owned })
        break
      case 'hard link': {
        const other = this.#at(partsOf(entry.target))
        if (other?.kind !== 'file')
          throw damagedTar(`the hard link "${entry.path.slice(0, 100)}" names no file that comes before the link`)
        above.children.set(name, other)
      }
    }
  }

  /** Counts one more entry. Throws if there are too many. A directory that is only a part of another path counts too. */
  #count() {
    this.#entries += 1
    if (this.#entries > mostEntries)
      throw new ImageFailed('too-many-files', `There are more than ${mostEntries} files and directories.`)
  }

  /** Returns the directory at this path. If a part of the path is missing, or is a file or link, puts a directory in its place. */
  #directoryAt(parts: readonly string[]): DirectoryNode {
    let node = this.root
    for (const part of parts) {
      let next = node.children.get(part)
      if (next?.kind !== 'directory') {
        this.#count()
        next = directory()
        node.children.set(part, next)
      }
      node = next
    }
    return node
  }

  #at(parts: readonly string[]): TreeNode | undefined {
    let node: TreeNode | undefined = this.root
    for (const part of parts) node = node?.kind === 'directory' ? node.children.get(part) : undefined
    return node
  }

  /** Finds a file or directory by its path. Symbolic links are followed, but none leads out of these files. */
  find(path: string): TreeNode | undefined {
    const todo = path.split('/')
    const above: DirectoryNode[] = []
    let node: TreeNode = this.root
    for (let links = 0; todo.length > 0; ) {
      const part = todo.shift() as string
      if (part === '' || part === '.') continue
      if (part === '..') {
        node = above.pop() ?? this.root
        continue
      }
      if (node.kind !== 'directory') return undefined
      const next = node.children.get(part)
      if (next === undefined) return undefined
      if (next.kind === 'link') {
        links += 1
        if (links > mostLinks) return undefined
        if (next.target.startsWith('/')) {
          above.length = 0
          node = this.root
        }
        todo.unshift(...next.target.split('/'))
        continue
      }
      if (next.kind === 'file' && todo.some((rest) => rest !== '' && rest !== '.')) return undefined
      if (node.kind === 'directory') above.push(node)
      node = next
    }
    return node
  }

  /**
   * Returns all paths that match the pattern, sorted. `*`, `?` and `[a-z]` match within one name. `\` escapes the character
   * after it.
   */
  async match(pattern: string, turns: EventLoopTurns): Promise<string[]> {
    let found: string[] = ['']
    for (const part of pattern.split('/').filter((each) => each !== '' && each !== '.')) {
      const names = tokensOf(part)
      const next: string[] = []
      for (const path of found) {
        await turns.next()
        const node = this.find(path)
        if (node?.kind !== 'directory') continue
        for (const name of [...node.children.keys()].sort()) {
          await turns.next()
          if (isMatch(name, names)) next.push(`${path}/${name}`)
        }
        if (next.length > mostEntries)
          throw new ImageFailed(
            'too-many-files',
            `The pattern "${pattern.slice(0, 100)}" matches more than ${mostEntries} files and directories.`,
          )
      }
      found = next
    }
    return found
  }
}

export const isPattern = (path: string): boolean => /[*?[]/.test(path)

export type Token = 'any' | 'star' | { set: (code: number) => boolean }

const codeAt = (text: string, at: number) => text.charCodeAt(at)

const setOf = (text: string, bad: () => Error): Token => {
  const isNot = text.startsWith('^')
  const ranges: [number, number][] = []
  for (let at = isNot ? 1 : 0; at < text.length; at++) {
    const from = codeAt(text, at)
    const isRange = text[at + 1] === '-' && at + 2 < text.length
    const to = isRange ? codeAt(text, at + 2) : from
    if (isRange) at += 2
    if (to < from) throw bad()
    ranges.push([from, to])
  }
  if (ranges.length === 0) throw bad()
  return { set: (code) => ranges.some(([from, to]) => code >= from && code <= to) !== isNot }
}

/** Parses the part of a pattern that matches one name, by the rules of Go's filepath.Match. */
export const tokensOf = (pattern: string): Token[] => {
  const bad = () => new ImageFailed('unsupported', `"${pattern.slice(0, 100)}" is not a usable pattern.`)
  const tokens: Token[] = []
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at] as string
    if (character === '*') tokens.push('star')
    else if (character === '?') tokens.push('any')
    else if (character === '[') {
      const end = pattern.indexOf(']', at + 2)
      if (end < 0) throw bad()
      tokens.push(setOf(pattern.slice(at + 1, end), bad))
      at = end
    } else {
      if (character === '\\') at++
      if (at === pattern.length) throw bad()
      const code = codeAt(pattern, at)
      tokens.push({ set: (other) => other === code })
    }
  }
  return tokens
}

/**
 * Whether a name matches. After a failed comparison, the search goes back only to the last star. Even a hostile pattern
 * therefore takes at most (length of name) × (length of pattern) steps.
 */
export const isMatch = (name: string, tokens: readonly Token[]): boolean => {
  let [at, token, star, starAt] = [0, 0, -1, 0]
  while (at < name.length) {
    const wanted = tokens[token]
    if (wanted === 'star') {
      star = token
      starAt = at
      token += 1
    } else if (wanted !== undefined && (wanted === 'any' || wanted.set(codeAt(name, at)))) {
      at += 1
      token += 1
    } else if (star >= 0) {
      starAt += 1
      at = starAt
      token = star + 1
    } else return false
  }
  while (tokens[token] === 'star') token += 1
  return token === tokens.length
}
