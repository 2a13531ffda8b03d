// Turns a disk into a stream and back, by GNU tar: content, modes, owners, nanoseconds, holes, hard links, whiteouts, access
// lists, and the extended attributes that a sandbox or its overlay can set. The disk is hostile and tar is root, so:
//
// - tar gets two names that we chose, and reads below them without following links;
// - tar unpacks into a directory that nothing else can reach, refuses a repeated name, and makes links that lead elsewhere last;
// - a fault in tar harms only that disk (confined-tar.ts).
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { basename, dirname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { confinedTar, type TarPlace } from './confined-tar.ts'
import { ArchiveFailed } from './failed.ts'

/** The two directories of a sandbox's disk that an archive stores. Both are in the same directory. */
export type DiskParts = { upper: string; etc: string }

/**
 * Limit of tar's address space. tar remembers every file with two names, and a hostile disk may have millions; the limit then
 * ends tar.
 */
const tarBytes = 1024 ** 3
/** Records of 64 KiB in both directions. tar reads the last record to its end. */
const records = ['--blocking-factor=128', '--read-full-records']
/** Attributes that a sandbox or its overlay can set itself. tar is root and would restore others too, which only root may set. */
const attributes = ['user.*', 'security.capability', 'trusted.overlay.*'].map((names) => `--xattrs-include=${names}`)
const everything = ['--numeric-owner', '--xattrs', ...attributes, '--acls', '--warning=none']
const stderrLimit = 16 * 1024
/** The longest path that tar can restore, because it names each file by its whole path. */
const maxPathBytes = 4095

const names = ({ upper, etc }: DiskParts): [string, string] => {
  if (basename(upper) !== 'upper' || basename(etc) !== 'etc' || dirname(upper) !== dirname(etc)) {
    throw new TypeError('a disk is a directory with upper and etc')
  }
  return ['upper', 'etc']
}

/** The directory that contains both `upper` and `etc`. */
export const holderOf = (disk: DiskParts): string => {
  names(disk)
  return dirname(disk.upper)
}

const startTar = (
  place: TarPlace,
  args: readonly string[],
  stdio: ['ignore', 'pipe', 'pipe'] | ['pipe', 'ignore', 'pipe'],
) => {
  const [program = '', ...words] = confinedTar({ ...place, mostBytes: tarBytes }, args)
  // The C locale: names are bytes, which tar must not interpret or change.
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }
  const child = spawn(program, words, { env, stdio })
  let said = ''
  child.stderr?.setEncoding('latin1').on('data', (text: string) => {
    said = (said + text).slice(0, stderrLimit)
  })
  return { child, ended: outcome(child, () => said) }
}

/**
 * Resolves when tar has succeeded. Otherwise throws with a line of tar's output, shortened and without unprintable characters,
 * because hostile file names appear in it.
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

/** Matches the line of tar's output that reports a full disk. The line may stand anywhere in the output. */
const noRoom = /: (No space left on device|Disk quota exceeded)$/

const look = (walk: string[]): Promise<string> =>
  runCommand(walk, { background: true, timeoutMs: 600_000, env: { LC_ALL: 'C' } }).catch((cause: unknown) => {
    throw new ArchiveFailed('disk', 'The disk cannot be read.', { cause })
  })

/** Throws for paths that tar could read but never restore. */
const refuseWhatCannotReturn = async (holder: string, parts: readonly string[]) => {
  const tooLong = ['-regextype', 'posix-extended', '-regex', `.{${maxPathBytes + 1},}`, '-print', '-quit']
  const walk = ['env', `--chdir=${holder}`, 'find', ...parts, ...tooLong]
  if ((await look(walk)) !== '') {
    throw new ArchiveFailed('disk', `The disk has a path of more than ${maxPathBytes} bytes, which cannot be archived.`)
  }
}

export type Extent = {
  /**
   * Space of all files if each is stored separately. This is more than the disk uses if files share contents (as with `cp` on
   * btrfs).
   */
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

/**
 * Yields the disk as one tar stream. An unchanged disk gives the same bytes each time. Nothing may write to the disk during the
 * call.
 */
export async function* readDisk(disk: DiskParts, signal?: AbortSignal): AsyncGenerator<Buffer> {
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

/** Makes `upper` and `etc` in an empty directory from a tar stream. On failure the caller removes the leftovers. */
export const writeDisk = async (
  stream: AsyncIterable<Buffer>,
  directory: string,
  signal?: AbortSignal,
): Promise<void> => {
  const careful = ['--keep-old-files', '--same-owner', '--same-permissions', '--delay-directory-restore']
  // Makes tar read to the end of the stream. If it ended at the archive's end mark, its input would close while the last chunk is
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
    // Use the error of the stream, if there is one. Otherwise tar ended early, and its message is the reason.
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
