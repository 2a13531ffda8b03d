// A fast, real PostgreSQL for tests, with its data in memory. The data is copied from an empty PostgreSQL that an earlier test run
// has stored, because setting up a new PostgreSQL takes seconds.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statfsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { silentLog } from '#src/kit/log.ts'
import { startPostgres } from '#src/postgres/embedded.ts'

/** An unprivileged uid that no other program uses. */
const uid = 64_202

const memory = '/dev/shm'
const roomyBytes = 2 ** 30

/**
 * Whether /dev/shm has enough free memory and allows programs to run from it. PostgreSQL is faster in /dev/shm, because a sync
 * takes no time.
 */
const isRoomyMemory = () => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n')
  const mount = mounts.find((line) => line.startsWith(`tmpfs ${memory} `))
  if (mount === undefined || /\bnoexec\b/.test(mount)) return false
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize > roomyBytes
}

const root = resolve(import.meta.dirname, '../..')
const clusters = join(root, '.alcove/test-clusters')

/**
 * Path of the stored data of an empty PostgreSQL (a cluster). The path has a hash of code, packages and user, so that each version
 * of the code and each user has data of its own.
 */
const readyCluster = (): string => {
  const made = createHash('sha256').update(String(process.getuid?.()))
  for (const file of ['package-lock.json', 'src/postgres/embedded.ts', 'src/postgres/programs.ts']) {
    made.update(readFileSync(join(root, file)))
  }
  return join(clusters, made.digest('hex').slice(0, 16))
}

/** Copies a directory, with the owners and modes of its files. Node's `cpSync` does not keep the owners. */
const copyTree = (from: string, to: string): boolean =>
  spawnSync('cp', ['--archive', '--reflink=auto', from, to], { stdio: 'ignore' }).status === 0

const takeCluster = (data: string): boolean => {
  const ready = readyCluster()
  if (!existsSync(ready)) return false
  if (copyTree(ready, data)) return true
  // The copy fails if a parallel test run removes the stored PostgreSQL cluster. This process then makes a new cluster.
  rmSync(data, { recursive: true, force: true })
  return false
}

/** Stores the data of a stopped PostgreSQL (a cluster) for later test runs, in place of earlier clusters. */
const keepCluster = (data: string): void => {
  try {
    rmSync(clusters, { recursive: true, force: true })
    mkdirSync(clusters, { recursive: true, mode: 0o700 })
    const unfinished = mkdtempSync(join(clusters, 'unfinished-'))
    // The copy gets its final name only when it is complete, so that an interrupted copy is never used.
    if (copyTree(data, join(unfinished, 'data'))) renameSync(join(unfinished, 'data'), readyCluster())
    rmSync(unfinished, { recursive: true, force: true })
  } catch {
    // Ignore the error: without a stored cluster, the next test run makes a new one. The checkout may belong to a different user,
    // or a second test run may be storing its cluster now.
  }
}

export type TestPostgres = {
  /** URL with which a test connects to this PostgreSQL as superuser. */
  url: string
  pid: number
  stop: () => Promise<void>
}

/** Starts a shell that ends PostgreSQL when the shell's input closes. That happens when this process ends, even by a kill. */
const endAfterUs = (pid: number, place: string) => {
  const script = 'read -r _; kill -QUIT "$1"; timeout 10 tail --pid="$1" -f /dev/null; rm -rf -- "$2"'
  const guard = spawn('sh', ['-c', script, 'sh', String(pid), place], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  ;(guard.stdin as Socket).unref()
  return guard
}

export const startTestPostgres = async (): Promise<TestPostgres> => {
  const place = mkdtempSync(join(isRoomyMemory() ? memory : tmpdir(), 'alcove-test-postgres-'))
  const remove = () => rmSync(place, { recursive: true, force: true })
  chmodSync(place, 0o711)
  const directory = join(place, 'data')
  const start = () =>
    startPostgres({ directory, socketDirectory: join(place, 'socket'), uid, gid: uid, log: silentLog() })
  const startFirst = async () => {
    if (takeCluster(directory)) return await start()
    await (await start()).stop()
    keepCluster(directory)
    return await start()
  }
  const { url, pid, stop } = await startFirst().catch((error) => {
    remove()
    throw error
  })
  const guard = endAfterUs(pid, place)
  return {
    url,
    pid,
    stop: async () => {
      guard.kill('SIGKILL')
      await stop()
      remove()
    },
  }
}
