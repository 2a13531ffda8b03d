// Builds an image with mmdebstrap, as a directory and as a compressed file (`target`). mmdebstrap is process 1 of its
// namespace, so a killed build leaves no process.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import { endWithUs } from './end-with-us.ts'
import { nodeModules } from './node-packages.ts'
import { createProgressReader } from './progress.ts'
import { mmdebstrapCommand, ownerShift, type Recipe } from './recipe.ts'
import { shiftOwners } from './shift-owners.ts'

type BuildParts = {
  recipe: Recipe
  /** Path of the compressed file to write. */
  target: string
  /**
   * Empty directory. The build leaves the image's unpacked files there, so the caller need not unpack the compressed file `target`.
   */
  root: string
  /** Directory for temporary files. The build empties it at the start and removes it at the end. */
  workDir: string
  onProgress: (progress: Progress) => void
  /** Called with a sentence if an optional part of the image could not be built. The build succeeds anyway. */
  onLack: (lack: string) => void
  timeoutMs: number
  /** Runs the build with low priority, so that the build does not slow down sandboxes. */
  isInBackground?: boolean
}

/**
 * Runs the build in a mount namespace without the pools of runners. A pool could not be removed while it is mounted in this
 * namespace. The file system of the build's own directory stays mounted.
 */
const withoutPools = `findmnt --noheadings --raw --types btrfs --output SOURCE,TARGET | while read -r device target; do
  at=$(printf %b "$target")
  case $device:$TMPDIR in /dev/loop*:"\${at%/}"/*) ;; /dev/loop*) umount --lazy -- "$at" ;; esac
done
exec "$@"`

const lastLinesLimit = 15
const lackPrefix = 'alcove: '

/** Finds the package index that pip uses on this host, if it is not PyPI. */
const indexOfHost = async (): Promise<Record<string, string>> => {
  const text = await readFile('/etc/pip.conf', 'utf8').catch(() => '')
  const url = /^index-url\s*=\s*(\S+)/m.exec(text)?.[1]
  return url === undefined ? {} : { PIP_INDEX_URL: url }
}

/** Returns the proxy that apt uses on this host, as environment variables, so that the proxy gets into no file of the image. */
const proxyEnvironment = async (): Promise<Record<string, string>> => {
  const ask = (scheme: string) =>
    runCommand(['apt-config', 'dump', '--format', '%v', `Acquire::${scheme}::Proxy`]).catch(() => '')
  const [http, https] = await Promise.all([ask('http'), ask('https')])
  const entries = [
    ['http_proxy', http.trim()],
    ['https_proxy', https.trim()],
  ] as const
  return Object.fromEntries(entries.filter(([, value]) => /^https?:\/\/\S+$/.test(value)))
}

const endOf = (child: ChildProcess) =>
  new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => resolve(code === 0 ? undefined : `${signal ?? `exit code ${code}`}`))
  })

export const buildImage = async ({
  recipe,
  target,
  root,
  workDir,
  onProgress,
  onLack,
  timeoutMs,
  isInBackground = false,
}: BuildParts): Promise<void> => {
  // Programs of a killed build may still write for a moment, so the removal of its files is retried.
  for (const left of leftOfBuild(workDir)) await rm(left, { recursive: true, force: true, maxRetries: 10 })
  await mkdir(workDir, { recursive: true, mode: 0o755 })
  const niceness = isInBackground ? ['nice', '-n', '10'] : []
  const [program, ...args] = endWithUs(['sh', '-c', withoutPools, 'sh', ...niceness, ...mmdebstrapCommand(recipe)])
  const builder = spawn(program as string, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LC_ALL: 'C.UTF-8',
      TMPDIR: workDir,
      NODE_MODULES: nodeModules,
      ...(await proxyEnvironment()),
      ...(await indexOfHost()),
    },
  })
  const packer = spawn('zstd', ['--quiet', '--force', '-3', '-T0', '-o', target], { stdio: ['pipe', 'ignore', 'pipe'] })
  const unpacker = spawn('tar', unpackingInto(root), { stdio: ['pipe', 'ignore', 'pipe'] })

  /**
   * True when the image's files are complete. mmdebstrap is then killed, because its removal of its own copy would take seconds.
   */
  let isComplete = false
  let isPacked = false
  const lastLines: string[] = []
  const progressIn = createProgressReader()
  const listen = (from: Readable) =>
    createInterface(from).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > lastLinesLimit) lastLines.shift()
      if (line.startsWith(lackPrefix)) onLack(line.slice(lackPrefix.length))
      const progress = progressIn(line)
      if (progress !== undefined) onProgress(progress)
      isPacked ||= line === 'I: done'
      if (!isPacked || !line.startsWith('I: removing tempdir')) return
      isComplete = true
      builder.kill('SIGKILL')
    })
  for (const { stderr } of [builder, packer, unpacker]) listen(stderr)

  let tookTooLong = false
  const timer = setTimeout(() => {
    tookTooLong = true
    builder.kill('SIGKILL')
  }, timeoutMs)
  const ends = [builder, packer, unpacker].map(endOf)
  try {
    const shifted = shiftOwners(ownerShift)
    const takers = [packer.stdin, unpacker.stdin]
    for (const taker of takers) shifted.pipe(taker)
    const endAll = () => {
      for (const child of [builder, packer, unpacker]) child.kill('SIGKILL')
    }
    for (const end of ends.slice(1)) void end.then((problem) => problem !== undefined && endAll())
    const piped = await Promise.all([pipeline(builder.stdout, shifted), ...takers.map(untilTaken)]).then(
      () => undefined,
      (error: Error) => {
        endAll()
        return error.message
      },
    )
    const [builderEnd, packerEnd, unpackerEnd] = await Promise.all(ends)
    const problem = (isComplete ? undefined : builderEnd) ?? piped ?? packerEnd ?? unpackerEnd
    if (tookTooLong) throw new Error(`the image was not built within ${timeoutMs / 1000} s:\n${lastLines.join('\n')}`)
    if (problem !== undefined) throw new Error(`the image could not be built (${problem}):\n${lastLines.join('\n')}`)
  } finally {
    clearTimeout(timer)
    await discard(workDir, { inBackground: isComplete })
  }
}

/** Resolves when the program has read all input or has ended. The program's exit code shows whether it succeeded. */
const untilTaken = (stdin: Writable) =>
  finished(stdin).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  })

/** Options of tar(1) to unpack an image's files with owners, modes, times and extended attributes. */
export const unpackingInto = (root: string): string[] => [
  ...['--extract', '--numeric-owner', '--preserve-permissions', '--xattrs', '--xattrs-include=*'],
  ...['--directory', root],
]

/** Directories that a killed build may have left. */
export const leftOfBuild = (workDir: string): string[] => [workDir, `${workDir}.old`]

const discard = async (workDir: string, { inBackground }: { inBackground: boolean }) => {
  const old = `${workDir}.old`
  await rename(workDir, old)
  const removed = removeTree(old, { tries: 10 })
  if (!inBackground) await removed
  // A failed removal is ignored, because the next build removes the directory first.
  else removed.catch(() => {})
}
