// Builds an image's tar stream into a compressed file. A killed build leaves no process: mmdebstrap is the first process of a pid
// namespace and runs in a mount namespace, and both end with this process.
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { runCommand } from '#src/kit/run-command.ts'
import type { Progress } from '#src/wire/runner-link.ts'
import { endWithUs } from './end-with-us.ts'
import { nodeModules } from './node-packages.ts'
import { createProgressReader } from './progress.ts'
import { mmdebstrapCommand, ownerShift, type Recipe } from './recipe.ts'
import { shiftOwners } from './shift-owners.ts'

type BuildParts = {
  recipe: Recipe
  /** The compressed file to write. */
  target: string
  /** Directory for temporary files. It is emptied first and removed afterwards. */
  workDir: string
  onProgress: (progress: Progress) => void
  /** Called with what the image lacks, although the build succeeds. */
  onLack: (lack: string) => void
  timeoutMs: number
  /** Runs the build with low priority, so that it does not slow down sandboxes. */
  isInBackground?: boolean
}

/**
 * Unmounts the pools of all servers in its own mount namespace, and then runs the build. Otherwise this namespace would keep the
 * pool of a server that is removed meanwhile. The file system of the build itself stays.
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

/** Finds the proxy that apt uses on this host. Returned as environment variables, so that the image contains no file about it. */
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
  workDir,
  onProgress,
  onLack,
  timeoutMs,
  isInBackground = false,
}: BuildParts): Promise<void> => {
  // The builder of a killed runner may still write for a moment, so the removal is retried.
  await rm(workDir, { recursive: true, force: true, maxRetries: 10 })
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

  const lastLines: string[] = []
  const progressIn = createProgressReader()
  const listen = (from: Readable) =>
    createInterface(from).on('line', (line) => {
      lastLines.push(line)
      if (lastLines.length > lastLinesLimit) lastLines.shift()
      if (line.startsWith(lackPrefix)) onLack(line.slice(lackPrefix.length))
      const progress = progressIn(line)
      if (progress !== undefined) onProgress(progress)
    })
  listen(builder.stderr)
  listen(packer.stderr)

  let tookTooLong = false
  const timer = setTimeout(() => {
    tookTooLong = true
    builder.kill('SIGKILL')
  }, timeoutMs)
  const [builderEnd, packerEnd] = [endOf(builder), endOf(packer)]
  try {
    const piped = await pipeline(builder.stdout, shiftOwners(ownerShift), packer.stdin as Writable).then(
      () => undefined,
      (error: Error) => {
        builder.kill('SIGKILL')
        packer.kill('SIGKILL')
        return error.message
      },
    )
    const problem = (await builderEnd) ?? piped ?? (await packerEnd)
    if (tookTooLong) throw new Error(`the image was not built within ${timeoutMs / 1000} s:\n${lastLines.join('\n')}`)
    if (problem !== undefined) throw new Error(`the image could not be built (${problem}):\n${lastLines.join('\n')}`)
    await packerEnd
  } finally {
    clearTimeout(timer)
    await rm(workDir, { recursive: true, force: true })
  }
}
