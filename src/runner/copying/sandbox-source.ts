// Reads files from the sandbox of an earlier stage or another image. The agent in that sandbox reads them, so no link can lead out
// of the sandbox. The agent's answers are checked like those of any sandbox.
import { EventLoopTurns } from '#src/kit/yield.ts'
import { agentPathInside } from '#src/runner/oci/config.ts'
import { AgentRefused, type Entry, type FileContents, type Files } from '#src/toolbox/agent/agent.ts'
import { asBytes, type WantedFiles } from './selection.ts'
import type { Contents, CopySource } from './source.ts'
import type { TarEntry } from './tar-reader.ts'
import { isPattern, Tree } from './tree.ts'

/** Directory of a sandbox in which a build keeps its own files. The image does not contain it. */
export const ownDirectory = '/.alcove-build'
/** Paths that exist in every sandbox but in no image. They are not copied. */
const notOfTheImage = new Set([
  ...['/proc', '/sys', '/dev', '/etc/hosts', '/etc/hostname', '/etc/resolv.conf', ownDirectory],
])
const mostLinks = 40
/** Maximum number of directory levels that the agent lists in one call. */
const deepest = 64
/** Number of files that are opened ahead, while an earlier file is copied. Many small files would otherwise take long. */
const ahead = 16

type SandboxSourceParts = { files: Files; place: string; signal: AbortSignal }

export class SandboxSource implements CopySource {
  readonly place: string
  readonly #files: Files
  readonly #signal: AbortSignal
  /** Paths of the files in the sandbox. A file's index in this list is its number in `Content`. */
  readonly #paths: string[] = []

  constructor({ files, place, signal }: SandboxSourceParts) {
    this.place = place
    this.#files = files
    this.#signal = signal
  }

  async tree(sources: readonly string[]): Promise<Tree> {
    const tree = new Tree({ keepsOwners: true })
    for (const source of sources) await this.#load(tree, asBytes(source))
    return tree
  }

  async *contents(files: WantedFiles): AsyncGenerator<Contents> {
    const wanted = [...this.#paths.keys()].filter((file) => files.get({ tar: 0, file }) !== undefined)
    const opened: Promise<FileContents>[] = []
    let next = 0
    try {
      for (const file of wanted) {
        this.#signal.throwIfAborted()
        for (; next < wanted.length && opened.length < ahead; next++) {
          const opening = this.#files.read(Buffer.from(this.#paths[wanted[next] as number] as string, 'latin1'))
          opening.catch(() => {})
          opened.push(opening)
        }
        const { length, stream } = await (opened.shift() as Promise<FileContents>)
        try {
          yield { wanted: files.get({ tar: 0, file }) as Contents['wanted'], size: length, pieces: stream }
        } finally {
          stream.destroy()
        }
      }
    } finally {
      for (const opening of opened) opening.then(({ stream }) => stream.destroy()).catch(() => {})
    }
  }

  /** Adds to `tree` all files below the path `source`, and each directory and symbolic link on that path. */
  async #load(tree: Tree, source: string): Promise<void> {
    const todo = source.split('/')
    let at: string[] = []
    for (let links = 0; todo.length > 0; ) {
      this.#signal.throwIfAborted()
      const name = todo.shift() as string
      if (name === '' || name === '.') continue
      if (name === '..') {
        at.pop()
        continue
      }
      const path = `/${[...at, name].join('/')}`
      if (isPattern(name) && (await this.#find(path)) === undefined) break
      const entry = await this.#find(path)
      if (entry === undefined) return
      this.#add(tree, path, entry)
      if (entry.type === 'symlink') {
        links += 1
        const target = (entry.target ?? Buffer.alloc(0)).toString('latin1')
        if (links > mostLinks) return
        if (target.startsWith('/')) at = []
        todo.unshift(...target.split('/'))
      } else if (entry.type === 'directory') at.push(name)
      else return
    }
    await this.#loadBelow(tree, at)
  }

  async #loadBelow(tree: Tree, start: readonly string[]): Promise<void> {
    const turns = new EventLoopTurns(this.#signal)
    const todo = [start.length === 0 ? '' : `/${start.join('/')}`]
    for (let directory = todo.pop(); directory !== undefined; directory = todo.pop()) {
      // The root and `/etc` are listed one level at a time, because all paths that must not be copied are directly in these
      // directories.
      const depth = directory === '' || directory === '/etc' ? 1 : deepest
      for await (const entry of this.#files.list(Buffer.from(directory || '/', 'latin1'), depth)) {
        await turns.next()
        const relative = entry.path.toString('latin1')
        const path = `${directory}/${relative}`
        if (notOfTheImage.has(path)) continue
        this.#add(tree, path, entry)
        if (entry.type === 'directory' && relative.split('/').length === depth) todo.push(path)
      }
    }
  }

  #add(tree: Tree, path: string, { type, mode, uid, gid, modifiedAt, size, target }: Entry): void {
    const kind = type === 'symlink' ? 'link' : type
    // These links to Alcove's sudo exist in every sandbox, but in no image (oci/sudo.ts), so they are not copied.
    if (kind === 'link' && target?.toString('latin1') === agentPathInside) return
    // Sockets, fifos and devices are not copied, because an image does not need them.
    if (kind !== 'file' && kind !== 'directory' && kind !== 'link') return
    const modifiedSeconds = Math.floor(modifiedAt.getTime() / 1000)
    const file = this.#paths.length
    if (kind === 'file') this.#paths.push(path)
    const entry: TarEntry = {
      type: kind,
      path,
      target: target?.toString('latin1') ?? '',
      mode,
      uid,
      gid,
      modifiedSeconds,
      size,
    }
    tree.add(entry, { tar: 0, file })
  }

  async #find(path: string): Promise<Entry | undefined> {
    try {
      return await this.#files.stat(Buffer.from(path, 'latin1'))
    } catch (error) {
      if (error instanceof AgentRefused && ['ENOENT', 'ENOTDIR'].includes(error.errno)) return undefined
      throw error
    }
  }
}
