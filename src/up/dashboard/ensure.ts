// Builds the pages of the dashboard into a directory of the cache when a version of Alcove first starts. If the build fails, the
// server starts without the pages.
import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { confined, users } from '#src/kit/confined.ts'
import { waitForLock } from '#src/kit/lock.ts'
import { nodeCommand, ownCode } from '#src/kit/own-code.ts'
import { CommandFailed, runCommand } from '#src/kit/run-command.ts'
import { reasonBeside } from '#src/wire/dashboard-files.ts'

const code = resolve(import.meta.dirname, '../../..')

/** A build takes a few seconds. A build that takes longer than this time, in ms, counts as hanging and is ended. */
const longestBuildMs = 120_000
/** A build of another version of Alcove is removed if no server has started with this build for so many ms. */
const keptMs = 30 * 24 * 60 * 60 * 1000
/** The name of an unfinished build's directory begins with this text. */
const unfinished = '.coming-'
const lockName = '.lock'

const notInBuild = /(?:^|\/)(?:node_modules|dist)(?:\/|$)|\.test\.tsx?$/

/** Lists the source files that the build depends on, as paths relative to `source`. */
const sourcesIn = (source: string): string[] =>
  readdirSync(source, { withFileTypes: true }).flatMap((entry) => {
    if (notInBuild.test(entry.name)) return []
    if (!entry.isDirectory()) return [entry.name]
    return sourcesIn(join(source, entry.name)).map((name) => `${entry.name}/${name}`)
  })

/** Returns the name of the build: a hash of the sources, of the packages, and of the program that builds. */
const nameOf = (source: string): string => {
  const own = ['package-lock.json', 'tsconfig.json', 'src/up/dashboard/process.ts', 'src/wire/dashboard-files.ts']
  const parts = [
    process.version,
    ...own.map((name) => hash('sha256', readFileSync(join(code, name)))),
    ...sourcesIn(source)
      .sort()
      .map((name) => `${name} ${hash('sha256', readFileSync(join(source, name)))}`),
  ]
  return hash('sha256', parts.join('\n')).slice(0, 32)
}

export type DashboardPlace = {
  /** The directory of the dashboard's sources. */
  source: string
  /** The directory of all builds, which every user may read. It may be missing if the built pages came with Alcove's code. */
  all: string
  /** The directory of the pages that are built from `source`. It appears when the build is complete. */
  directory: string
  /** True if the built pages came with Alcove's code, as in a container image of Alcove. They are not built here. */
  isPackaged?: true
}

const hasPages = (source: string): boolean => existsSync(join(source, 'index.html'))

/** Returns the directories of the dashboard's sources and of the build, which may not exist yet. */
export const findDashboardPlace = (cacheDirectory: string, source = join(code, 'dashboard')): DashboardPlace => {
  const all = join(cacheDirectory, 'dashboard')
  const packaged = join(source, 'pages')
  if (existsSync(packaged)) return { source, all, directory: packaged, isPackaged: true }
  mkdirSync(all, { recursive: true, mode: 0o755 })
  return { source, all, directory: join(all, hasPages(source) ? nameOf(source) : 'none') }
}

const runBuild = async (source: string, out: string): Promise<void> => {
  mkdirSync(out, { mode: 0o755 })
  chownSync(out, users.builder, users.builder)
  const command = confined({
    command: [...nodeCommand('src/up/dashboard/process.ts'), source, out],
    uid: users.builder,
    // The build also needs the checkout's tsconfig.json, because the tsconfig.json of the pages extends it.
    shown: [...ownCode(), { from: join(code, 'tsconfig.json') }, { from: source }, { from: out, isWritable: true }],
    sockets: 'none',
    limits: { cpu: longestBuildMs / 1000 },
  })
  await runCommand(command, { timeoutMs: longestBuildMs, env: { NODE_ENV: 'production', NO_COLOR: '1' } })
}

/**
 * Makes root the owner of a build's files, so that no other program can change code that browsers run. Removes links and other
 * special files, because a link could point to any file of this host.
 */
const takeOver = (directory: string): void => {
  chownSync(directory, 0, 0)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (!entry.isFile() && !entry.isDirectory()) {
      rmSync(path)
      continue
    }
    chownSync(path, 0, 0)
    chmodSync(path, entry.isDirectory() ? 0o755 : 0o644)
    if (entry.isDirectory()) takeOver(path)
  }
}

/** Removes the files of builds that were killed, and finished builds that no server has used for a long time. */
const tidy = ({ all, directory }: DashboardPlace): void => {
  for (const name of readdirSync(all)) {
    const path = join(all, name)
    const isOld = Date.now() - statSync(path).mtimeMs > keptMs && path !== directory && name !== lockName
    if (isOld || name.startsWith(unfinished)) rmSync(path, { recursive: true, force: true })
  }
}

const build = async (place: DashboardPlace, say: (line: string) => void): Promise<void> => {
  if (!hasPages(place.source)) throw new Error(`${place.source} has no pages`)
  using _lock = await waitForLock(join(place.all, lockName), { timeoutMs: longestBuildMs })
  // Another server may have built these pages while this server waited for the lock.
  if (existsSync(place.directory)) return
  tidy(place)
  say('Building dashboard/ …')
  const out = join(place.all, `${unfinished}${process.pid}`)
  await runBuild(place.source, out)
  takeOver(out)
  renameSync(out, place.directory)
}

const sentenceOf = (error: Error): string => {
  const text = error instanceof CommandFailed && error.stderr !== '' ? error.stderr : error.message
  return text
    .trim()
    .split(/\s*\n\s*/)
    .slice(0, 4)
    .join(' ')
}

/** Writes why a build failed into a file for control. Without the file, control says that a build is in progress. */
const leaveReason = (directory: string, sentence: string | undefined): void => {
  const path = reasonBeside(directory)
  try {
    if (sentence === undefined) rmSync(path, { force: true })
    else writeFileSync(path, `${sentence}\n`, { mode: 0o644 })
  } catch {
    // The disk is full or read-only. The server then runs without the dashboard, and control cannot show the reason.
  }
}

/**
 * Builds the pages, unless they exist. Two servers may call this function at the same time. If the build fails, returns a sentence
 * that says why.
 */
export const ensureDashboard = async (
  place: DashboardPlace,
  say: (line: string) => void,
): Promise<string | undefined> => {
  const { directory } = place
  if (place.isPackaged) return undefined
  try {
    const now = new Date()
    // The time stamp of the directory shows when a server last used this build.
    if (existsSync(directory)) utimesSync(directory, now, now)
    else await build(place, say)
    leaveReason(directory, undefined)
    return undefined
  } catch (error) {
    const sentence = sentenceOf(error as Error)
    leaveReason(directory, sentence)
    return sentence
  }
}
