// Writes the files of a tar archive from a sandbox below one directory, and never outside of it. The sandbox may be hostile:
//   - The copy ends at an absolute name or a name with `..`. On Windows, it also ends at a name that Windows takes for another
//     name or a device.
//   - Nothing is written through a link: each directory in the path is checked, and a new file replaces a link of its name.
//   - Links are made after all other entries, so nothing is written through them. A link must stay below the directory.
//   - Permissions keep no set-user-id. Devices, sockets and pipes are left out.
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, open, rename, rm, symlink, utimes } from 'node:fs/promises'
import { cleanLine } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'
import { type Entry, readTar } from './tar-reader.ts'

/**
 * Maximum number of entries in an archive. There is a limit, because the paths of the archive's directories are held in
 * memory.
 */
const mostEntries = 5_000_000
const mostNameBytes = 4096

export type UnpackParts = {
  onBytes: (count: number) => void
  onTrouble: (name: string, why: string) => void
}

const isWindows = process.platform === 'win32'
const slash = Buffer.from('/')

/** Matches file names that Windows would take for another name, a device or a data stream. */
const unsafeOnWindows = /[\\:*?"<>|\u0000-\u001f]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

const escapes = (name: Buffer): Failure =>
  new Failure(
    `The sandbox sent the path "${cleanLine(name.toString())}", which is outside the target directory.`,
    exitCodes.refused,
  )

/**
 * Splits a name into parts, with one character (latin1) for each byte, because names need not be UTF-8. Throws a Failure if the
 * name may lead outside of the target directory.
 */
export const partsOf = (name: Buffer): string[] => {
  const text = name.toString('latin1')
  if (text.startsWith('/') || text.includes('\0') || name.length > mostNameBytes) throw escapes(name)
  const parts = text.split('/').filter((part) => part !== '' && part !== '.')
  for (const part of parts) {
    if (part === '..' || (isWindows && unsafeOnWindows.test(part))) throw escapes(name)
  }
  return parts
}

/**
 * Whether a link stays below the unpacked directory, even through other links of the archive. `..` is allowed only at the beginning
 * of the link's target: after the name of a second link, `..` could lead anywhere.
 */
export const staysBelow = (parts: readonly string[], target: Buffer): boolean => {
  const text = target.toString('latin1')
  if (text === '' || text.startsWith('/') || text.includes('\0') || isWindows) return false
  const steps = text.split('/').filter((step) => step !== '' && step !== '.')
  const up = steps.findIndex((step) => step !== '..')
  const count = up < 0 ? steps.length : up
  return count < parts.length && !steps.slice(count).includes('..')
}

const isMissing = (error: unknown): undefined => {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return undefined
}

const umask = process.umask()
/** The latest modification time of a file, in the year 2106. Some file systems cannot store later times. In seconds since 1970. */
const latest = 2 ** 32 - 1

const setTime = async (path: Buffer, mtime: number): Promise<void> => {
  const time = Math.min(Math.max(mtime, 0), latest)
  await utimes(path, time, time)
}

class Unpacking {
  readonly #root: Buffer
  readonly #parts: UnpackParts
  /** The paths of directories that were checked or made. */
  readonly #directories = new Set<string>()
  /** The paths of directories that this unpacking has made. Directories that existed before keep their permissions. */
  readonly #made = new Set<string>()
  readonly #finishing: { path: Buffer; mode: number; mtime: number }[] = []
  readonly #links: { parts: string[]; target: Buffer }[] = []
  readonly #files = new Set<string>()
  #count = 0

  constructor(root: string, parts: UnpackParts) {
    this.#root = Buffer.from(root)
    this.#parts = parts
  }

  #path(parts: readonly string[]): Buffer {
    return Buffer.concat([this.#root, ...parts.flatMap((part) => [slash, Buffer.from(part, 'latin1')])])
  }

  /** Makes sure that a path and all paths above it are directories and not links. Makes directories that are missing. */
  async #enter(parts: readonly string[]): Promise<void> {
    for (let depth = 0; depth <= parts.length; depth += 1) {
      const key = parts.slice(0, depth).join('/')
      if (this.#directories.has(key)) continue
      const path = this.#path(parts.slice(0, depth))
      const found = await lstat(path).catch(isMissing)
      if (found === undefined) {
        await mkdir(path)
        this.#made.add(key)
      }
      // Directories below the target directory must not be links. The target directory itself (depth 0) may be a link.
      else if (depth > 0 && !found.isDirectory()) {
        const name = cleanLine(Buffer.from(key, 'latin1').toString())
        throw new Failure(`"${name}" exists already and is not a directory.`, exitCodes.localFile)
      }
      this.#directories.add(key)
    }
  }

  /**
   * Writes a file under a random name, then renames it. A link with the final name is replaced, and nothing is written through it.
   */
  async #write(parts: readonly string[], entry: Entry, fill: (draft: Buffer) => Promise<void>): Promise<void> {
    const directory = parts.slice(0, -1)
    await this.#enter(directory)
    const draft = this.#path([...directory, `.alcove-${randomBytes(8).toString('hex')}`])
    try {
      await fill(draft)
      await chmod(draft, entry.mode & 0o777 & ~umask)
      await setTime(draft, entry.mtime)
      await rename(draft, this.#path(parts))
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
    this.#files.add(parts.join('/'))
  }

  async #addFile(parts: readonly string[], entry: Entry): Promise<void> {
    await this.#write(parts, entry, async (draft) => {
      await using file = await open(draft, 'wx', 0o600)
      for await (const piece of entry.contents) {
        await file.writeFile(piece)
        this.#parts.onBytes(piece.length)
      }
    })
  }

  async #addLink(parts: readonly string[], entry: Entry): Promise<void> {
    const source = partsOf(entry.linkName)
    if (!this.#files.has(source.join('/'))) return this.#skip(parts, 'is a link to a file that was not sent')
    await this.#write(parts, entry, (draft) => copyFile(this.#path(source), draft, constants.COPYFILE_EXCL))
  }

  #skip(parts: readonly string[], why: string): void {
    this.#parts.onTrouble(Buffer.from(parts.join('/'), 'latin1').toString(), why)
  }

  async add(entry: Entry): Promise<void> {
    this.#count += 1
    if (this.#count > mostEntries)
      throw new Failure(`The sandbox sent more than ${mostEntries} files.`, exitCodes.refused)
    const parts = partsOf(entry.name)
    if (entry.kind === 'directory') {
      await this.#enter(parts)
      const path = this.#path(parts)
      if (this.#made.has(parts.join('/'))) this.#finishing.push({ path, mode: entry.mode, mtime: entry.mtime })
    } else if (parts.length === 0) throw escapes(entry.name)
    else if (entry.kind === 'file') await this.#addFile(parts, entry)
    else if (entry.kind === 'link') await this.#addLink(parts, entry)
    else if (entry.kind === 'symlink') this.#links.push({ parts, target: entry.linkName })
    else this.#skip(parts, 'is not a file, directory or link, and was not copied')
  }

  async finish(): Promise<void> {
    for (const { parts, target } of this.#links) {
      if (!staysBelow(parts, target)) {
        this.#skip(
          parts,
          `is a link to "${target.toString()}", which may lead outside the copied files, and was not copied`,
        )
        continue
      }
      await this.#enter(parts.slice(0, -1))
      const path = this.#path(parts)
      const found = await lstat(path).catch(isMissing)
      if (found?.isDirectory())
        this.#skip(parts, 'is a link and was not copied, because a directory with this name exists')
      else {
        await rm(path, { force: true })
        await symlink(target, path)
      }
    }
    // Directories get their permissions and times last: writing their contents would change the times.
    for (const { path, mode, mtime } of this.#finishing.reverse()) {
      await chmod(path, (mode & 0o777 & ~umask) | 0o700)
      await setTime(path, mtime)
    }
  }
}

/** Writes an archive below a directory, which is made if it is missing. */
export const unpackInto = async (
  root: string,
  source: AsyncIterable<Uint8Array>,
  parts: UnpackParts,
): Promise<void> => {
  const unpacking = new Unpacking(root, parts)
  for await (const entry of readTar(source)) await unpacking.add(entry)
  await unpacking.finish()
}

/** Writes the only file of an archive to a path, whatever name the file has in the archive. */
export const unpackFile = async (
  directory: string,
  name: string,
  source: AsyncIterable<Uint8Array>,
  parts: UnpackParts,
): Promise<void> => {
  const unpacking = new Unpacking(directory, parts)
  let count = 0
  for await (const entry of readTar(source)) {
    count += 1
    if (count > 1 || entry.kind !== 'file')
      throw new Failure('The sandbox did not send a single file.', exitCodes.refused)
    await unpacking.add({ ...entry, name: Buffer.from(name) })
  }
  if (count === 0) throw new Failure('The sandbox sent no file.', exitCodes.refused)
}
