// Files of a sandbox, with the rights of one of its users. For each call the agent forks, becomes that user, and only then resolves
// the path. Names are bytes, not always UTF-8.
import { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { beneath, type Inflow, type Take, writeThrough } from '#src/kit/inflow.ts'
import { AgentGone, Connection, closeSoon, requestRaw } from './connection.ts'
import { takeTurn } from './file-turns.ts'
import { BadFrame, FieldReader, FieldWriter, kinds, maxPayloadBytes } from './frames.ts'

export type Path = string | Uint8Array

const types = ['file', 'directory', 'symlink', 'fifo', 'socket', 'character', 'block'] as const

export type Entry = {
  /** Path relative to the listed directory; empty in the result of `stat`. */
  path: Buffer
  type: (typeof types)[number]
  size: number
  /** The twelve permission bits of the file. */
  mode: number
  modifiedAt: Date
  uid: number
  gid: number
  /** Name of the owner; empty if the sandbox has no name for the uid. */
  owner: string
  group: string
  /** Target of a symbolic link; `null` for other types of files. */
  target: Buffer | null
}

export type FileContents = {
  /** Size of the whole file, in bytes. */
  size: number
  /** Number of bytes in `stream`, which ends with an error if the file becomes shorter meanwhile. */
  length: number
  stream: Readable
}

/**
 * File operations of one user. A failure is an `AgentRefused` with stage `file` and the kernel's errno. EINVAL: the path is neither
 * a file nor a directory.
 */
export interface Files {
  /** Returns the absolute path of the directory where relative paths start. */
  directory(): Promise<string>
  stat(path: Path, options?: { followLink?: boolean }): Promise<Entry>
  /** Lists a directory to a depth of 1 to 64, without following links. The entries have no order and no maximum number. */
  list(path: Path, depth?: number): AsyncGenerator<Entry, void, void>
  read(path: Path, options?: { offset?: number; length?: number }): Promise<FileContents>
  /**
   * Replaces the file when all contents are on the disk; if `contents` throws, the old file stays. A chunk's memory may be reused
   * when the next chunk is requested.
   */
  write(path: Path, contents: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, options?: WriteOptions): Promise<void>
  /**
   * Makes files, directories and links from records (`unpackRecord`, agent/PROTOCOL.md). If the stream ends early, the entries made
   * so far stay. An unknown owner fails with stage `user`.
   */
  unpack(
    records: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner?: { owner?: string; group?: string },
  ): Promise<void>
  /** Makes the directory and its missing parents. Returns false if the directory already existed. */
  mkdir(path: Path, mode?: number): Promise<boolean>
  /**
   * Renames a file or directory. EEXIST: the target exists and `overwrite` is not set. EXDEV: the target is on another file system.
   */
  move(from: Path, to: Path, options?: { overwrite?: boolean }): Promise<void>
  /** Deletes a file or directory. Fails with EISDIR for a directory if `recursive` is not set. */
  remove(path: Path, options?: { recursive?: boolean }): Promise<void>
  setPermissions(path: Path, change: { mode?: number; owner?: string; group?: string }): Promise<void>
}

/** Without `mode` an existing file keeps its mode, and a new file gets 0644. */
export type WriteOptions = { mode?: number; makeParents?: boolean }

export type UnpackRecord = {
  type: 'file' | 'directory' | 'link' | 'hard link'
  path: Uint8Array
  /** Target of a symbolic link. For a hard link: the path of the file that it links to. */
  target?: Uint8Array
  mode?: number
  uid?: number
  gid?: number
  modifiedSeconds?: number
  /** Size of a file in bytes. Its contents follow the record. */
  size?: number
}

const unpackTypes = ['file', 'directory', 'link', 'hard link'] as const

/**
 * Encodes one record. In the stream, the contents of a file come after its record. Directories and links have no
 * contents.
 */
export const unpackRecord = (record: UnpackRecord): Buffer => {
  const { type, path, target = new Uint8Array(0), mode = type === 'directory' ? 0o755 : 0o644 } = record
  const head = Buffer.alloc(37)
  head.writeUInt8(unpackTypes.indexOf(type), 0)
  head.writeUInt32LE(mode, 1)
  head.writeUInt32LE(record.uid ?? asRequested, 5)
  head.writeUInt32LE(record.gid ?? asRequested, 9)
  head.writeBigInt64LE(BigInt(record.modifiedSeconds ?? 0), 13)
  head.writeBigUInt64LE(BigInt(record.size ?? 0), 21)
  head.writeUInt32LE(path.length, 29)
  head.writeUInt32LE(target.length, 33)
  return Buffer.concat([head, path, target])
}

const asRequested = 0xffffffff
const keepMode = 0xffffffff
const wholeLength = Number.MAX_SAFE_INTEGER

const readEntry = (payload: Buffer): Entry => {
  const fields = new FieldReader(payload)
  const type = types[fields.u8()]
  if (type === undefined) throw new BadFrame('a type of file that does not exist')
  const [mode, size, modifiedAt] = [fields.u32(), fields.u64OrMost(), fields.time()]
  const [uid, gid, owner, group] = [fields.u32(), fields.u32(), fields.string(), fields.string()]
  const [path, target] = [fields.rawString(), fields.rawString()]
  fields.end()
  return { path, type, size, mode, modifiedAt, uid, gid, owner, group, target: type === 'symlink' ? target : null }
}

async function* entries(socketPath: string, kind: number, body: Buffer): AsyncGenerator<Entry, void, void> {
  using _ = await takeTurn('read', socketPath)
  const [connection] = await Connection.request(socketPath, kind, body)
  try {
    for (;;) {
      const frame = await connection.nextSoon()
      if (frame.kind === kinds.end) return
      if (frame.kind !== kinds.entry) throw new BadFrame(`kind ${frame.kind} in a list of files`)
      yield readEntry(frame.payload)
    }
  } finally {
    connection.close()
  }
}

/** A stream of exactly `length` bytes. Fails if the agent sends more bytes or fewer. */
class Contents extends Readable {
  readonly #from: Inflow
  #left: number
  /** Whether `_read` reads from the agent. False after `pipe` to a response, which then gets the bytes directly. */
  #isRead = true
  #isUnderWay = false

  constructor(from: Inflow, length: number) {
    super()
    this.#from = from
    this.#left = length
    const finish = () => {
      if (this.#left === 0) this.push(null)
      else this.destroy(new AgentGone('the file became shorter, or the sandbox ended, while it was read'))
    }
    from.once('end', finish).once('close', finish)
  }

  #passOn(take: Take): void {
    this.#isUnderWay = true
    this.#from.takeOver((bytes) => {
      this.#left -= bytes.length
      if (this.#left >= 0) return take(bytes)
      this.destroy(new BadFrame('more of the file than was promised'))
      return false
    })
  }

  override _read(): void {
    if (!this.#isRead) return
    if (this.#isUnderWay) this.#from.resume()
    else this.#passOn((bytes) => this.push(Buffer.from(bytes)))
  }

  /** Writes the bytes to a response without copying them. */
  override pipe<T extends NodeJS.WritableStream>(to: T): T {
    if (!(to instanceof ServerResponse)) return super.pipe(to)
    const socket = beneath(to)
    this.#isRead = false
    this.once('end', () => to.end())
    this.#passOn((bytes) => writeThrough(socket, bytes, () => this.#from.resume()))
    // Nobody reads from this stream: the bytes go directly to the socket. `resume` makes the stream emit `end`.
    this.resume()
    return to
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (error === null) closeSoon(this.#from)
    else this.#from.destroy()
    done(error)
  }
}

const read = async (socketPath: string, body: Buffer): Promise<FileContents> => {
  const turn = await takeTurn('read', socketPath)
  const [socket, answer] = await requestRaw(socketPath, kinds.fileRead, body).catch((error: unknown) => {
    turn[Symbol.dispose]()
    throw error
  })
  socket.once('close', () => turn[Symbol.dispose]())
  try {
    const [size, length] = [answer.u64OrMost(), answer.u64()]
    answer.end()
    return { size, length, stream: new Contents(socket, length) }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/**
 * Time in ms that the agent gets to remove the unfinished file, before the caller gets the error of a failed write. A paused agent
 * removes the file later.
 */
const removalMs = 1000

const write = async (
  socketPath: string,
  kind: number,
  body: Buffer,
  contents: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> => {
  using _ = await takeTurn('write', socketPath)
  const [connection] = await Connection.request(socketPath, kind, body)
  let isAnswered = false
  const answer = connection.nextOrRefusal().finally(() => {
    isAnswered = true
  })
  // Prevent an unhandled rejection. The answer is awaited later, and its error is handled there.
  answer.catch(() => {})
  try {
    for await (const chunk of contents) {
      for (let at = 0; at < chunk.length && !isAnswered; at += maxPayloadBytes) {
        // This `await` always ends, because the agent reads on even after a refusal. A `Promise.race` with `answer` would leave a
        // handler in memory for each chunk.
        await connection.sendWhole(kinds.stdin, chunk.subarray(at, at + maxPayloadBytes))
      }
      if (isAnswered) break
    }
    if (!isAnswered) connection.send(kinds.stdinEnd)
    const { kind } = await answer
    if (kind !== kinds.end) throw new BadFrame(`kind ${kind} for a file that was written`)
  } catch (error) {
    // Wait for the agent to remove the unfinished file before the caller gets the error.
    const waiting = setTimeout(() => connection.abort(), removalMs)
    connection.sendNoMore()
    await answer.catch(() => {}).finally(() => clearTimeout(waiting))
    throw error
  } finally {
    connection.close()
  }
}

const command = async (socketPath: string, kind: number, body: Uint8Array): Promise<void> => {
  using _ = await takeTurn('read', socketPath)
  await Connection.command(socketPath, kind, body)
}

export const filesAt = (socketPath: string, user: string): Files => {
  const as = (...paths: Path[]): FieldWriter =>
    paths.reduce<FieldWriter>((fields, path) => fields.string(path), new FieldWriter().string(user))
  const stat: Files['stat'] = async (path, { followLink = false } = {}) => {
    using _ = await takeTurn('read', socketPath)
    const [connection] = await Connection.request(
      socketPath,
      kinds.fileStat,
      as(path)
        .u8(followLink ? 1 : 0)
        .done(),
    )
    try {
      const frame = await connection.nextSoon()
      if (frame.kind !== kinds.entry) throw new BadFrame(`kind ${frame.kind} for a file`)
      return readEntry(frame.payload)
    } finally {
      connection.close()
    }
  }
  return {
    // The agent serves each file call in a process whose working directory is the user's home.
    directory: async () => (await stat('/proc/self/cwd')).target?.toString('utf8') ?? '/',
    stat,
    list: (path, depth = 1) => entries(socketPath, kinds.fileList, as(path).u32(depth).done()),
    read: async (path, { offset = 0, length = wholeLength } = {}) =>
      read(socketPath, as(path).u64(offset).u64(length).done()),
    write: async (path, contents, { mode = keepMode, makeParents = false } = {}) =>
      write(
        socketPath,
        kinds.fileWrite,
        as(path)
          .u32(mode)
          .u8(makeParents ? 1 : 0)
          .done(),
        contents,
      ),
    unpack: async (records, { owner = '', group = '' } = {}) =>
      write(socketPath, kinds.fileUnpack, as(owner, group).done(), records),
    mkdir: async (path, mode = keepMode) => {
      using _ = await takeTurn('read', socketPath)
      const [connection, answer] = await Connection.request(socketPath, kinds.fileMkdir, as(path).u32(mode).done())
      connection.close()
      const created = answer.u8() === 1
      answer.end()
      return created
    },
    move: async (from, to, { overwrite = false } = {}) =>
      command(
        socketPath,
        kinds.fileMove,
        as(from, to)
          .u8(overwrite ? 1 : 0)
          .done(),
      ),
    remove: async (path, { recursive = false } = {}) =>
      command(
        socketPath,
        kinds.fileRemove,
        as(path)
          .u8(recursive ? 1 : 0)
          .done(),
      ),
    setPermissions: async (path, { mode = keepMode, owner = '', group = '' }) =>
      command(socketPath, kinds.filePermissions, as(path).u32(mode).string(owner).string(group).done()),
  }
}
