// Turns a disk into a tar stream and back, by GNU tar. The stream keeps contents, modes, owners, exact times, holes, hard
// links, whiteouts, access lists, and the extended attributes that a sandbox or its overlay can set. The disk is hostile and
// tar is root, therefore:
//
// - tar packs only directories whose names this runner chose, such as `upper` and `etc`, and does not follow links in them;
// - tar unpacks into a directory that no other program can reach;
// - tar refuses a stream that contains the same path twice, and makes links that lead out of the disk last, so that it cannot
//   follow them;
// - a fault in tar can harm only that disk (confined-tar.ts).
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename, dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { confinedTar, type TarPlace } from './confined-tar.ts'
import { ArchiveFailed } from './failed.ts'

/** The two parts of a sandbox's disk that an archive contains. They must be in one directory. */
export type DiskParts = { upper: string; etc: string }
/** A directory that can be packed: a disk, or the files of a base image. */
export type Packable = DiskParts | { rootfs: string }

/**
 * Limit of tar's address space. tar remembers each file with several hard links, and a hostile disk may have millions of such
 * files.
 */
const tarBytes = 1024 ** 3
/** Options: tar reads and writes records of 64 KiB, and reads the last record to its end. */
const records = ['--blocking-factor=128', '--read-full-records']
/** tar restores only attributes that a sandbox or its overlay can set. Only root of the host may set other attributes. */
const attributes = ['user.*', 'security.capability', 'trusted.overlay.*'].map((names) => `--xattrs-include=${names}`)
const everything = ['--numeric-owner', '--xattrs', ...attributes, '--acls', '--warning=none']
const stderrLimit = 16 * 1024
/** Maximum length of a path that tar can restore, because tar opens each file by its whole path. */
const maxPathBytes = 4095

const names = (parts: Packable): string[] => {
  if ('rootfs' in parts) {
    if (basename(parts.rootfs) !== 'rootfs') throw new TypeError('the files of a base image are in rootfs')
    return ['rootfs']
  }
  const { upper, etc } = parts
  if (basename(upper) !== 'upper' || basename(etc) !== 'etc' || dirname(upper) !== dirname(etc)) {
    throw new TypeError('a disk is a directory with upper and etc')
  }
  return ['upper', 'etc']
}

/**
 * Returns the directory that contains `upper` and `etc` of the disk, or `rootfs`. Throws TypeError if the paths have other names.
 */
export const holderOf = (parts: Packable): string => {
  names(parts)
  return dirname('rootfs' in parts ? parts.rootfs : parts.upper)
}

const startTar = (
  place: TarPlace,
  args: readonly string[],
  stdio: ['ignore', 'pipe', 'pipe'] | ['pipe', 'ignore', 'pipe'],
) => {
  const [program = '', ...words] = confinedTar({ ...place, mostBytes: tarBytes }, args)
  // In the C locale, file names are plain bytes that tar neither interprets nor changes.
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }
  const child = spawn(program, words, { env, stdio })
  let said = ''
  child.stderr?.setEncoding('latin1').on('data', (text: string) => {
    said = (said + text).slice(0, stderrLimit)
  })
  return { child, ended: outcome(child, () => said) }
}

/**
 * Throws an error with a line of tar's output if tar fails. The line is short and printable, because a hostile disk chose the file
 * names in it.
 */
const outcome = async (child: ChildProcess, said: () => string): Promise<void> => {
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  if (code === 0) return
  const lines = said().split('\n')
  const sentence = lines.find((line) => noRoom.test(line)) ?? lines[0] ?? ''
  const harmless = sentence
    .replace(/^tar: /, '')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(-300)
  throw new ArchiveFailed(
    'disk',
    harmless || (signal === null ? `tar ended with ${code}` : `tar was ended by ${signal}`),
  )
}

/** Matches a line of tar's output that reports a full disk. Other lines may follow it. */
const noRoom = /: (No space left on device|Disk quota exceeded)$/

const look = (walk: string[]): Promise<string> =>
  runCommand(walk, { background: true, timeoutMs: 600_000, env: { LC_ALL: 'C' } }).catch((cause: unknown) => {
    throw new ArchiveFailed('disk', 'The disk cannot be read.', { cause })
  })

/** Throws if the disk contains a path that tar can pack but cannot restore. */
const refuseWhatCannotReturn = async (holder: string, parts: readonly string[]) => {
  const tooLong = ['-regextype', 'posix-extended', '-regex', `.{${maxPathBytes + 1},}`, '-print', '-quit']
  const walk = ['env', `--chdir=${holder}`, 'find', ...parts, ...tooLong]
  if ((await look(walk)) !== '') {
    throw new ArchiveFailed('disk', `The disk has a path of more than ${maxPathBytes} bytes, which cannot be archived.`)
  }
}

export type Extent = {
  /** Disk space of all files, as if no two files shared data. After `cp` on btrfs, files share data and use less. */
  bytesApart: number
  directories: number
}

const count = `find "$@" -type d -printf 'd\\n' -o -type f -printf '%b %n\\n' |
  awk 'NF == 1 { directories++; next } { sum += $1 / $2 } END { printf "%.0f %d", sum * 512, directories }'`

export const extentOf = async (disk: DiskParts): Promise<Extent> => {
  const walk = ['env', `--chdir=${holderOf(disk)}`, 'sh', '-c', count, 'sh', ...names(disk)]
  const [bytesApart = 0, directories = 0] = (await look(walk)).split(' ').map(Number)
  return { bytesApart, directories }
}

/** Yields the disk as a tar stream, which is equal each time for an unchanged disk. Nothing may write to the disk meanwhile. */
export async function* readDisk(disk: Packable, signal?: AbortSignal): AsyncGenerator<Buffer> {
  const holder = holderOf(disk)
  await refuseWhatCannotReturn(holder, names(disk))
  const headers = '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime'
  const order = ['--format=posix', headers, '--sort=name', '--sparse']
  const { child, ended } = startTar(
    { directory: holder, isWritten: false },
    ['--create', '--file=-', ...records, ...everything, ...order, ...names(disk)],
    ['ignore', 'pipe', 'pipe'],
  )
  ended.catch(() => undefined)
  const stop = () => child.kill('SIGKILL')
  signal?.addEventListener('abort', stop, { once: true })
  try {
    for await (const piece of child.stdout!) yield piece as Buffer
    await ended
    signal?.throwIfAborted()
  } catch (error) {
    signal?.throwIfAborted()
    if (!(error instanceof ArchiveFailed)) throw error
    throw new ArchiveFailed('disk', `The disk cannot be read: ${error.message}.`, { cause: error })
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
    await ended.catch(() => undefined)
  }
}

/** Unpacks a tar stream into `upper` and `etc` in an empty directory. If that fails, the caller removes what was unpacked. */
export const writeDisk = async (
  stream: AsyncIterable<Buffer>,
  directory: string,
  signal?: AbortSignal,
): Promise<void> => {
  const careful = ['--keep-old-files', '--same-owner', '--same-permissions', '--delay-directory-restore']
  // With this option, tar reads its input to the end. Otherwise tar would stop at the archive's end mark, while the last chunk is
  // still being verified.
  const toTheEnd = '--ignore-zeros'
  const { child, ended } = startTar(
    { directory, isWritten: true },
    ['--extract', '--file=-', toTheEnd, ...records, ...everything, ...careful],
    ['pipe', 'ignore', 'pipe'],
  )
  ended.catch(() => undefined)
  const stop = () => child.kill('SIGKILL')
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await pipeline(Readable.from(stream), child.stdin!)
    await ended
  } catch (error) {
    signal?.throwIfAborted()
    // If the input `stream` has failed, its error is thrown. Otherwise tar itself has failed, and tar's output says why.
    const why =
      error instanceof ArchiveFailed
        ? error
        : await ended.then(
            () => error,
            (said: unknown) => said,
          )
    if (!(why instanceof ArchiveFailed) || why.why !== 'disk') throw why
    throw new ArchiveFailed('disk', `The archive cannot be unpacked: ${why.message}.`, { cause: error })
  } finally {
    signal?.removeEventListener('abort', stop)
    stop()
    await ended.catch(() => undefined)
  }
}
