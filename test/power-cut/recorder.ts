// Records with strace what a process, its threads and its child processes do to files, in order. A sync is recorded only if fsync
// was really called. Needs root.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * A change to a file by the recorded process. Paths are absolute. For a file without a name, the path is the kernel's text, such as
 * `/var/tmp/#123 (deleted)`.
 */
export type Operation =
  | { kind: 'create' | 'empty' | 'mkdir' | 'remove' | 'sync'; path: string }
  /** Bytes were written at the position `at` of the file, or at its end if `at` is undefined. */
  | { kind: 'write'; path: string; bytes: Buffer; at: number | undefined }
  | { kind: 'cut'; path: string; length: number }
  | { kind: 'rename' | 'link'; path: string; to: string }
  | { kind: 'copy'; path: string; to: string }
  | { kind: 'sync-all' }
  /**
   * The tested code tells its caller that the work is done: it calls `mark` or, if it runs in another process, writes to a socket.
   */
  | { kind: 'told' }

const calls =
  'open,openat,lseek,write,pwrite64,writev,pwritev,ftruncate,truncate,fsync,fdatasync,syncfs,sync,rename,renameat,renameat2,link,' +
  'linkat,mkdir,mkdirat,unlink,unlinkat,rmdir,ioctl,sendto,sendmsg,copy_file_range,sendfile'

export class Recorder {
  readonly #directory = mkdtempSync(join(tmpdir(), 'alcove-recorder-'))
  readonly #trace = join(this.#directory, 'trace')
  readonly #marks = openSync(join(this.#directory, 'marks'), 'a')
  readonly #pid: number
  #strace: ReturnType<typeof spawn> | undefined

  private constructor(pid: number) {
    this.#pid = pid
  }

  static async attach(pid = process.pid): Promise<Recorder> {
    const recorder = new Recorder(pid)
    const options = ['-f', '-y', '-s', '1000000', '-e', 'signal=none', '-e', `trace=${calls}`]
    const strace = spawn('strace', [...options, '-o', recorder.#trace, '-p', String(pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    recorder.#strace = strace
    let said = ''
    const attached = Promise.withResolvers<void>()
    strace.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('attached')) attached.resolve()
    })
    strace.once('exit', () => attached.reject(new Error(`strace ended: ${said}`)))
    strace.once('error', attached.reject)
    await attached.promise
    return recorder
  }

  /**
   * Records that the tested code reports finished work to its caller. If the code runs in another process, its writes to sockets
   * count as reports instead.
   */
  mark() {
    writeSync(this.#marks, '.')
  }

  async stop(): Promise<Operation[]> {
    if (this.#strace?.exitCode === null && this.#strace.signalCode === null) {
      const exit = once(this.#strace, 'exit')
      this.#strace.kill('SIGINT')
      await exit
    }
    const marks = join(this.#directory, 'marks')
    const isTold = (path: string) => (this.#pid === process.pid ? path === marks : /^(?:socket|UNIX):/.test(path))
    return readOperations(readFileSync(this.#trace, 'utf8'), isTold)
  }

  async [Symbol.asyncDispose]() {
    await this.stop()
    closeSync(this.#marks)
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** Splits the output of strace into lines with one system call each. If strace has printed a call in two parts, joins the parts. */
const wholeCalls = (trace: string): string[] => {
  const begun = new Map<string, string>()
  const whole: string[] = []
  for (const line of trace.split('\n')) {
    const [, pid = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, first] = /^(.*) <unfinished \.\.\.>$/.exec(text) ?? []
    const [, rest] = /^<\.\.\. \w+ resumed>(.*)$/.exec(text) ?? []
    if (first !== undefined) begun.set(pid, first)
    else whole.push(rest === undefined ? text : `${begun.get(pid) ?? ''}${rest}`)
  }
  return whole
}

const escapes: Record<string, number> = { n: 10, t: 9, r: 13, v: 11, f: 12, '"': 34, '\\': 92 }

/** Returns the bytes of a string in the output of strace, which writes some bytes as escape sequences. */
const bytesOf = (text: string): Buffer => {
  const bytes: number[] = []
  for (const [piece] of text.matchAll(/\\[0-7]{1,3}|\\x[0-9a-f]{2}|\\.|[^\\]/gs)) {
    if (!piece.startsWith('\\')) bytes.push(...Buffer.from(piece))
    else if (/^\\[0-7]/.test(piece)) bytes.push(Number.parseInt(piece.slice(1), 8))
    else bytes.push(escapes[piece[1]!] ?? Number.parseInt(piece.slice(2), 16))
  }
  return Buffer.from(bytes)
}

const string = String.raw`"((?:[^"\\]|\\.)*)"`
const file = String.raw`-?\w+<((?:[^>\\]|\\.|>\()*?)>(?:\(deleted\))?`
const place = `(?:${file}, )?${string}`

const matchers: [RegExp, (found: (string | undefined)[], result: number) => Operation[]][] = [
  [
    RegExp(`^open(?:at)?\\(${place}, ([A-Z_|]+).*<(.*)>$`, 's'),
    ([, , , flags = '', opened = '']) => {
      if (flags.includes('O_TRUNC')) return [{ kind: 'empty', path: opened }]
      return /O_CREAT|O_TMPFILE/.test(flags) ? [{ kind: 'create', path: opened }] : []
    },
  ],
  [
    RegExp(`^write\\(${file}, ${string}, `, 's'),
    ([, path = '', bytes = ''], count) => [
      { kind: 'write', path, bytes: bytesOf(bytes).subarray(0, count), at: undefined },
    ],
  ],
  [
    RegExp(`^pwrite64\\(${file}, ${string}, \\d+, (\\d+)`, 's'),
    ([, path = '', bytes = '', at], count) => [
      { kind: 'write', path, bytes: bytesOf(bytes).subarray(0, count), at: Number(at) },
    ],
  ],
  [
    RegExp(`^p?writev\\(${file}, \\[(.*)\\], \\d+`, 's'),
    ([, path = '', pieces = ''], count) => {
      const bytes = [...pieces.matchAll(RegExp(`iov_base=${string}`, 'gs'))].map(([, piece = '']) => bytesOf(piece))
      return [{ kind: 'write', path, bytes: Buffer.concat(bytes).subarray(0, count), at: undefined }]
    },
  ],
  [RegExp(`^ftruncate\\(${file}, (\\d+)`), ([, path = '', length]) => [{ kind: 'cut', path, length: Number(length) }]],
  [RegExp(`^f(?:data)?sync\\(${file}`), ([, path = '']) => [{ kind: 'sync', path }]],
  [
    RegExp(`^send(?:to|msg)\\(${file}`),
    ([, path = '']) => [{ kind: 'write', path, bytes: Buffer.alloc(0), at: undefined }],
  ],
  [/^sync(?:fs)?\(/, () => [{ kind: 'sync-all' }]],
  [
    RegExp(`^(?:rename|link)(?:at2?)?\\(${place}, ${place}`),
    ([whole = '', from, name = '', into, target = '']) => [
      {
        kind: whole.startsWith('rename') ? 'rename' : 'link',
        path: resolve(from ?? '/', bytesOf(name).toString()),
        to: resolve(into ?? '/', bytesOf(target).toString()),
      },
    ],
  ],
  [
    RegExp(`^mkdir(?:at)?\\(${place}`),
    ([, from, name = '']) => [{ kind: 'mkdir', path: resolve(from ?? '/', bytesOf(name).toString()) }],
  ],
  [
    RegExp(`^(?:unlink|rmdir|unlinkat)\\(${place}`),
    ([, from, name = '']) => [{ kind: 'remove', path: resolve(from ?? '/', bytesOf(name).toString()) }],
  ],
  [RegExp(`^ioctl\\(${file}, .*FICLONE.*<(.*)>`), ([, to = '', path = '']) => [{ kind: 'copy', path, to }]],
]

/** The next write position in each open file. Files are identified by path, so no file may be open twice at once. */
class Positions {
  readonly #next = new Map<string, number>()
  readonly #appended = new Set<string>()

  see(text: string, result: number) {
    const [, , , flags, path] = RegExp(`^open(?:at)?\\(${place}, ([A-Z_|]+).*<(.*)>$`, 's').exec(text) ?? []
    if (path !== undefined) {
      this.#next.set(path, 0)
      if (flags?.includes('O_APPEND')) this.#appended.add(path)
      else this.#appended.delete(path)
    }
    const [, sought] = RegExp(`^lseek\\(${file}`).exec(text) ?? []
    if (sought !== undefined) this.#next.set(sought, result)
  }

  /**
   * Returns the position at which a write of `length` bytes begins, and moves the position behind these bytes. Undefined for a file
   * opened for appending.
   */
  take(path: string, length: number): number | undefined {
    if (this.#appended.has(path)) return undefined
    const at = this.#next.get(path) ?? 0
    this.#next.set(path, at + length)
    return at
  }
}

/**
 * Returns the changes of files in the output of strace. A path such as `/proc/self/fd/3` becomes the path of the open file.
 * `isTold`: whether a write to a path reports finished work.
 */
const readOperations = (trace: string, isTold: (path: string) => boolean): Operation[] => {
  const opened = new Map<string, string>()
  const positions = new Positions()
  return wholeCalls(trace).flatMap((text): Operation[] => {
    const [, result] = / = (-?\d+)(?:<.*>)?(?: .*)?$/s.exec(text) ?? []
    if (result === undefined || Number(result) < 0) return []
    for (const [, number = '', path = ''] of text.matchAll(/\b(\d+)<([^>]*)>/g)) opened.set(number, path)
    positions.see(text, Number(result))
    assert.doesNotMatch(text, /^(?:copy_file_range|sendfile|truncate)\(/, 'the recorder knows how to read it')
    const found = matchers
      .map(([shape, read]) => ({ parts: shape.exec(text), read }))
      .find(({ parts }) => parts !== null)
    return (found?.read([...found.parts!], Number(result)) ?? []).map((operation): Operation => {
      if (operation.kind === 'write') {
        if (isTold(operation.path)) return { kind: 'told' }
        return { ...operation, at: operation.at ?? positions.take(operation.path, operation.bytes.length) }
      }
      if (operation.kind !== 'link' || dirname(operation.path) !== '/proc/self/fd') return operation
      return { ...operation, path: opened.get(basename(operation.path)) ?? operation.path }
    })
  })
}
