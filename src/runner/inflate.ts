// Decompresses untrusted data. A fault in a decompressing program, written in C, could give the sender the rights of the runner.
// Each of these programs therefore runs without privileges or sockets, and cannot write files. The memory and processor time of
// each are limited. The caller limits the size of the output.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { confined, users } from '#src/kit/confined.ts'

type Compression = 'gzip' | 'zstd' | 'bzip2' | 'xz'

const commands = {
  gzip: ['gzip', '-dcq'],
  // The data says how much memory `zstd` needs, so a hostile file could request very much. This limit is the default of `zstd`.
  zstd: ['zstd', '-dcq', '--memory=128MB'],
  bzip2: ['bzip2', '-dcq'],
  // `xz` may use as much memory as `zstd`. This limit is enough: data from `xz -9` needs 65 MiB.
  xz: ['xz', '-dcq', '--memlimit-decompress=128MiB'],
} as const satisfies Record<Compression, readonly string[]>

const limits = { memory: 1024 ** 3, cpu: 2 * 3600, files: 16, filesize: 0 }

/** Whether the exit code means success. gzip ignores bytes after the compressed data, but then exits with 2. */
const isFine = (compression: Compression, code: number | null) => code === 0 || (compression === 'gzip' && code === 2)

export class Damaged extends Error {
  override readonly name = 'Damaged'
}

/**
 * Returns the command line of the program that decompresses. If this process is root, the program runs as an unprivileged user.
 */
const commandOf = (compression: Compression): string[] => {
  const command = commands[compression]
  return process.getuid?.() === 0 ? confined({ command, uid: users.unpacker, sockets: 'none', limits }) : [...command]
}

/**
 * Decompresses the stream `packed`, and throws the stream's errors. Throws `Damaged` if the data is damaged or not in the format
 * `compression`.
 */
export async function* inflate(packed: AsyncIterable<Buffer>, compression: Compression): AsyncGenerator<Buffer> {
  const [program = '', ...args] = commandOf(compression)
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: '/usr/bin:/bin' } })
  const ended = once(child, 'close') as Promise<[number | null]>
  ended.catch(() => {})
  let cause: unknown
  const fed = pipeline(Readable.from(packed), child.stdin).catch((error: NodeJS.ErrnoException) => {
    // The child has stopped reading, because it needs no more data or has failed. Its exit code shows which is true.
    if (error.code === 'EPIPE' || error.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    cause = error
    child.kill('SIGKILL')
  })
  try {
    for await (const piece of child.stdout) yield piece as Buffer
    const [code] = await ended
    await fed
    if (cause !== undefined) throw cause
    if (!isFine(compression, code)) throw new Damaged(`the ${compression} data is damaged`)
  } finally {
    child.kill('SIGKILL')
    child.stdin.destroy()
    await Promise.allSettled([fed, ended])
  }
}
