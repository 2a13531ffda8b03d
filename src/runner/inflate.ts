// Decompressing what strangers made. Decompressors are C programs that read hostile bytes, so none runs in the runner, which is
// root: each is a process of its own without privileges, files and sockets, with bounds on memory and processor time. What it
// puts out is bounded by whoever reads it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { confined, users } from '#src/kit/confined.ts'

type Compression = 'gzip' | 'zstd' | 'bzip2' | 'xz'

const commands = {
  gzip: ['gzip', '-dcq'],
  // The sender chooses the window, which is memory here; this is the default, and more than our own archives need.
  zstd: ['zstd', '-dcq', '--memory=128MB'],
  bzip2: ['bzip2', '-dcq'],
  // Bounded as zstd is; what `xz -9` packs needs 65 MiB.
  xz: ['xz', '-dcq', '--memlimit-decompress=128MiB'],
} as const satisfies Record<Compression, readonly string[]>

const limits = { memory: 1024 ** 3, cpu: 2 * 3600, files: 16, filesize: 0 }

/** gzip warns of bytes behind its data, which `tar` and others pass over too. */
const isFine = (compression: Compression, code: number | null) => code === 0 || (compression === 'gzip' && code === 2)

export class Damaged extends Error {
  override readonly name = 'Damaged'
}

/** Without root there is nothing to be given away. */
const commandOf = (compression: Compression): string[] => {
  const command = commands[compression]
  return process.getuid?.() === 0 ? confined({ command, uid: users.unpacker, sockets: 'none', limits }) : [...command]
}

/** Throws what `packed` throws, and `Damaged` where that is no such data. Ends the process when nobody reads on. */
export async function* inflate(packed: AsyncIterable<Buffer>, compression: Compression): AsyncGenerator<Buffer> {
  const [program = '', ...args] = commandOf(compression)
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'ignore'], env: { PATH: '/usr/bin:/bin' } })
  const ended = once(child, 'close') as Promise<[number | null]>
  ended.catch(() => {})
  let cause: unknown
  const fed = pipeline(Readable.from(packed), child.stdin).catch((error: NodeJS.ErrnoException) => {
    // It stops reading where it finds something wrong, or has read all it wants, and its exit tells which.
    if (error.code === 'EPIPE' || error.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    cause = error
    child.kill('SIGKILL')
  })
  try {
    for await (const piece of child.stdout) yield piece as Buffer
    const [code] = await ended
    await fed
    if (cause !== undefined) throw cause
    if (!isFine(compression, code)) throw new Damaged(`this is no sound ${compression} data`)
  } finally {
    child.kill('SIGKILL')
    child.stdin.destroy()
    await Promise.allSettled([fed, ended])
  }
}
