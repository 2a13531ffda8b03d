// Fetches the git repository that an ADD names. git runs without privileges, hooks or configuration, in the network for image
// downloads, and uses only HTTP. The result is a tar file that the host never unpacks.
import { constants } from 'node:fs'
import { chown, type FileHandle, mkdir, open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { users } from '#src/kit/confined.ts'
import { openEgress } from './egress.ts'
import { checkRoom } from './files.ts'
import { ImageFailed } from './image-failed.ts'
import { isOfOperator } from './skopeo.ts'
import { type Fetching, fail, fetchWebFile, tooLarge, tooSlow } from './web-file.ts'
import { bytesWrittenBelow, lastWords, runJob } from './workshop.ts'

export type Repository = {
  url: string
  /** A branch, a tag or a full commit id. */
  ref: string
  /** Subdirectory of the repository to fetch. Empty: the whole repository. */
  directory: string
  keepsHistory: boolean
}

/** A tar file with the files of the git repository at the commit `commit`. A program without privileges has written this file. */
export type RepositoryFile = { file: FileHandle; size: number; commit: string }

const exitNoRef = 41
const exitSubmodules = 42
const exitNoDirectory = 43
const exitTar = 44
const exitTooMany = 45

const environment = [
  ...['GIT_CONFIG_NOSYSTEM=1', 'GIT_CONFIG_GLOBAL=/dev/null', 'GIT_TERMINAL_PROMPT=0', 'GIT_ASKPASS=/bin/false'],
  ...['GIT_ALLOW_PROTOCOL=http:https', 'GIT_LFS_SKIP_SMUDGE=1'],
]

// Arguments of the script: the repository's address, the ref, the directory, the names that tar omits, and a number. A repository
// with this number of files and directories, or more, is refused.
const script = `set -e
umask 022
mkdir /work/tree; cd /work/tree
git init --quiet --template= .
git config fetch.unpackLimit 1
git config gc.auto 0
git fetch --quiet --no-tags --no-recurse-submodules --depth 1 -- "$1" "$2" || exit ${exitNoRef}
git rev-parse --verify --quiet 'FETCH_HEAD^{commit}' || exit ${exitNoRef}
if git cat-file -e FETCH_HEAD:.gitmodules 2>/dev/null; then exit ${exitSubmodules}; fi
[ "$(git cat-file -t "FETCH_HEAD:$3" 2>/dev/null)" = tree ] || exit ${exitNoDirectory}
# A few objects may describe more files and directories than any disk holds, so they are counted before they are made.
[ "$(git ls-tree -r -t --name-only FETCH_HEAD | head -n "$5" | wc -l)" -lt "$5" ] || exit ${exitTooMany}
git checkout --quiet --detach FETCH_HEAD
cd "./$3"
tar --create --sort=name --format=pax --owner=0 --group=0 --numeric-owner --exclude="$4" --file=/work/file . || exit ${exitTar}`

/** Maximum number of files and directories of a repository. COPY has an equal limit for its files. */
const mostEntries = 200_000
/** git and tar together may write this many times the image's maximum size: they write git objects, files and a tar. */
const shareOfJob = 4

/** Maximum number of git objects that a server may send. git needs memory for each object. */
const mostObjects = 2 * mostEntries

const tooMany = (what: string, most: number, cause?: unknown) =>
  new ImageFailed('too-many-files', `The repository has ${most} ${what} or more.`, { cause })

/** Throws if git is receiving too many objects. The header of the pack file contains the number of objects (gitformat-pack(5)). */
const checkObjects = async (place: string) => {
  const directory = join(place, 'tree/.git/objects/pack')
  const names = await readdir(directory).catch(() => [])
  for (const name of names.filter((each) => each.startsWith('tmp_pack_')))
    if ((await objectsOf(join(directory, name))) >= mostObjects) throw tooMany('git objects', mostObjects)
}

const objectsOf = async (pack: string): Promise<number> => {
  const file = await open(pack, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  if (file === undefined) return 0
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(12), 0, 12, 0)
    return bytesRead === 12 ? buffer.readUInt32BE(8) : 0
  } finally {
    await file.close()
  }
}

export const fetchRepository = async (
  { url: address, ref, directory, keepsHistory }: Repository,
  checksum: string | undefined,
  fetching: Fetching,
): Promise<RepositoryFile> => {
  const { settings, limits, scratch, mostBytes, signal } = fetching
  const url = new URL(address)
  // Before git runs, curl requests the refs. An unreachable server or an error status is thus reported like that of an ADD with a
  // URL.
  const asked = join(scratch, 'asked')
  await mkdir(asked)
  const refs = `${address.replace(/\/$/, '')}/info/refs?service=git-upload-pack`
  const { file } = await fetchWebFile(refs, undefined, { ...fetching, scratch: asked })
  await file.close()
  const place = join(scratch, 'cloned')
  await mkdir(place)
  await chown(place, users.fetcher, users.fetcher)
  await using egress = await openEgress(isOfOperator({ registry: url.host }, settings), settings, scratch)
  const leftOut = keepsHistory ? '' : './.git'
  const outcome = await runJob(scratch, {
    argv: ['env', ...environment, 'sh', '-c', script, 'sh', address, ref, directory, leftOut, String(mostEntries)],
    views: [...egress.views, { from: place, at: '/work', writable: true }],
    ids: { base: users.fetcher, count: 1 },
    network: egress.of,
    largestFileBytes: mostBytes,
    timeoutMs: limits.timeoutMs,
    tookTooLong: () => tooSlow(url),
    signal,
    watch: async (pid) => {
      await checkRoom(place, limits)
      await checkObjects(place)
      if ((await bytesWrittenBelow(pid)) > shareOfJob * mostBytes) throw tooLarge(mostBytes)
    },
  })
  const cause = lastWords(outcome.stderr)
  // The callback `watch` checks only at intervals, so it may have missed that the git server sent too many objects.
  if (outcome.exitCode !== 0) await checkObjects(place)
  switch (outcome.exitCode) {
    case 0:
      break
    case exitNoRef:
      throw fail(
        `There is no ${ref} in the repository, or its server does not send it; write a branch, a tag or a whole commit.`,
        cause,
      )
    case exitSubmodules:
      throw fail('The repository has submodules; clone it with RUN git clone --recurse-submodules.', cause)
    case exitNoDirectory:
      throw fail(`There is no directory ${directory} in the repository.`, cause)
    case exitTooMany:
      throw tooMany('files and directories', mostEntries, cause)
    case exitTar:
      throw tooLarge(mostBytes, cause)
    default:
      throw fail(`The repository could not be fetched from ${url.host}.`, cause)
  }
  const commit = /^[0-9a-f]{40,64}$/m.exec(outcome.stdout.toString())?.[0] ?? ''
  if (checksum !== undefined && !commit.startsWith(checksum))
    throw new ImageFailed('corrupted', `The repository does not match --checksum: its commit is ${commit}.`)
  return { ...(await opened(join(place, 'file'))), commit }
}

/** Opens the tar file as root. Throws if it is not a regular file. */
const opened = async (path: string) => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  const stats = await file.stat()
  if (stats.isFile()) return { file, size: stats.size }
  await file.close()
  throw new ImageFailed('corrupted', 'The files of the repository cannot be read.')
}
