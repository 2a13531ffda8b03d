// Runs one program of this host on a caller's data, so that a fault in the program cannot harm the host. The program runs in a user
// namespace without rights on the host. The program sees only the host's programs and the given paths. Its time, memory and file
// sizes are limited. If this process dies, the program is killed.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { filtered, filterProgram } from '#src/kit/confined.ts'
import { mountsToHide, readLayout } from '../cgroup/layout.ts'
import { endWithUs } from './end-with-us.ts'

export type View = { from: string; at: string; writable?: boolean }

/** A symbolic link to create in the root directory that a job sees. */
type Link = { target: string; name: string }

export type Job = {
  argv: readonly string[]
  /** Directories and files that the job sees besides the programs of this host. Each of these paths must exist. */
  views: readonly View[]
  /** User ids of the job: id 0 in the job is the host's id `base`, and so on for `count` ids. */
  ids: { base: number; count: number }
  capabilities?: readonly string[]
  /** The network of the job: the host's network, the network of a namespace, or none. */
  network: 'of the host' | { netnsPath: string } | 'none'
  /** A file that only this job can read. The file's text is only in a tmpfs, in no argument list and on no disk. */
  secret?: { at: string; text: string } | undefined
  largestFileBytes: number
  timeoutMs: number
  /** Makes the error of a job that has not ended in time. `stderr`: what the job has written to its standard error. */
  tookTooLong: (stderr: string) => Error
  signal?: AbortSignal | undefined
  /** Called at intervals with the pid of the job's topmost process. If this function throws, the job is ended. */
  watch?: (pid: number) => Promise<void>
}

/** The result of a job that ended by itself. */
export type Outcome = { exitCode: number | null; stdout: Buffer; stderr: string }

/** Returns an error for the log with the last lines that a failed job has written to its standard error. */
export const lastWords = (stderr: string): Error => new Error(stderr.trim().slice(-2000))

const outputLimitBytes = 8 * 1024 * 1024
const memoryLimitBytes = 8 * 1024 ** 3
const watchEveryMs = 150
const filterAt = '/confine'

// A shell script that starts a job with crun, as root in namespaces of its own. The script's arguments:
// - the directory that `makeSkeleton` made
// - the user id that owns the job's secret; empty if the job has none
// - the number of mounts of the host that the job must not see, and these mounts
// - the number of views (paths of the host that the job sees), and these paths
// The script reads the secret from its standard input. It moves the made directory to /mnt, because crun enters this directory as
// the user nobody, who cannot enter the runner's directories. Each job waits for the script, so the script starts few programs.
const enter = `set -e
place=$1; owner=$2; shift 2
n=$1; shift; while [ "$n" -gt 0 ]; do umount -l -- "$1"; shift; n=$((n - 1)); done
mount --bind -- "$place" "$place"
if [ -n "$owner" ]; then
  mount -t tmpfs -o mode=711,size=4m tmpfs "$place/secret"
  (umask 377; cat >"$place/secret/text"); chown "$owner:$owner" "$place/secret/text"
fi
i=0; n=$1; shift; while [ "$i" -lt "$n" ]; do
  mount --bind -- "$1" "$place/views/$i"
  shift; i=$((i + 1))
done
mount --move "$place" /mnt
cd /mnt
exec nice -n 10 crun --root /mnt/state --cgroup-manager disabled run --bundle /mnt job`

/** Makes the job's root directory below `place`, with an empty file or directory wherever something is mounted later. */
const makeSkeleton = async (
  place: string,
  { views, links, secret }: { views: readonly View[]; links: readonly Link[]; secret: Job['secret'] },
) => {
  const root = join(place, 'root')
  const inRoot = ['proc', 'dev', 'tmp'].map((name) => join(root, name))
  for (const path of [root, ...inRoot, join(place, 'views'), join(place, 'secret')])
    await mkdir(path, { recursive: true, mode: 0o755 })
  for (const { target, name } of links) await symlink(target, join(root, name))
  const makeFile = async (path: string) => {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, '', { mode: 0o444 })
  }
  if (secret !== undefined) await makeFile(join(root, secret.at))
  for (const [index, { from, at }] of views.entries()) {
    const isDirectory = (await stat(from)).isDirectory()
    for (const point of [join(root, at), join(place, 'views', String(index))])
      await (isDirectory ? mkdir(point, { recursive: true, mode: 0o755 }) : makeFile(point))
  }
}

/** Finds the directories of programs and libraries on this host. On most hosts `/lib` and similar paths are links into `/usr`. */
const systemDirectories = () => {
  const links: Link[] = []
  const views: View[] = [{ from: '/usr', at: '/usr' }]
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    const found = lstatSync(`/${name}`, { throwIfNoEntry: false })
    if (found?.isSymbolicLink()) links.push({ target: `usr/${name}`, name })
    else if (found?.isDirectory()) views.push({ from: `/${name}`, at: `/${name}` })
  }
  return { links, views }
}

const namespacesFor = (network: Job['network']) => {
  if (network === 'of the host') return []
  return [{ type: 'network', ...(network === 'none' ? {} : { path: network.netnsPath }) }]
}

const configOf = (job: Job, views: readonly View[]) => {
  const { argv, ids, capabilities = [], largestFileBytes, network } = job
  const identity = [{ containerID: 0, hostID: ids.base, size: ids.count }]
  const limit = (type: string, value: number) => ({ type, soft: value, hard: value })
  const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
    ...{ destination, type, source },
    options: ['nosuid', 'nodev', ...options],
  })
  return {
    ociVersion: '1.0.2',
    root: { path: 'root', readonly: true },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: filtered(filterAt, network === 'none' ? 'unix' : 'internet', argv),
      env: ['PATH=/usr/bin:/bin', 'HOME=/tmp', 'LC_ALL=C.UTF-8'],
      cwd: '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
      rlimits: [
        limit('RLIMIT_FSIZE', largestFileBytes),
        limit('RLIMIT_AS', memoryLimitBytes),
        limit('RLIMIT_CORE', 0),
        limit('RLIMIT_NOFILE', 1024),
      ],
    },
    mounts: [
      mount('/proc', 'proc', 'proc', 'noexec'),
      mount('/dev', 'tmpfs', 'tmpfs', 'mode=755', 'size=64k'),
      mount('/tmp', 'tmpfs', 'tmpfs', 'size=64m'),
      ...views.map(({ at, writable }, index) =>
        mount(at, 'bind', `/mnt/views/${index}`, 'bind', writable === true ? 'rw' : 'ro'),
      ),
      ...(job.secret === undefined ? [] : [mount(job.secret.at, 'bind', '/mnt/secret/text', 'bind', 'ro')]),
    ],
    linux: {
      namespaces: [...['user', 'pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })), ...namespacesFor(network)],
      uidMappings: identity,
      gidMappings: identity,
    },
  }
}

/**
 * Collects the output of a program. If the output is long, stores only its first part (about `outputLimitBytes`), or only its last
 * 64 KiB.
 */
const heard = (from: Readable, keep: 'first' | 'last') => {
  let text = Buffer.alloc(0)
  from.on('data', (chunk: Buffer) => {
    if (keep === 'first' && text.length >= outputLimitBytes) return
    text = Buffer.concat([text, chunk])
    if (keep === 'last') text = text.subarray(-64 * 1024)
  })
  return () => text
}

/**
 * Runs the job. Throws if this process had to end the job: at its timeout, on abort, or because `watch` threw. `scratch`: a
 * directory that belongs to root.
 */
export const runJob = async (scratch: string, job: Job): Promise<Outcome> => {
  const system = systemDirectories()
  const views = [...system.views, { from: filterProgram, at: filterAt }, ...job.views]
  const hidden = mountsToHide(readLayout())
  const place = join(scratch, `job-${randomBytes(4).toString('hex')}`)
  await mkdir(place, { mode: 0o755 })
  try {
    await makeSkeleton(place, { views, links: system.links, secret: job.secret })
    await writeFile(join(place, 'config.json'), JSON.stringify(configOf(job, views)))
    const counted = (items: readonly string[]) => [String(items.length), ...items]
    const owner = job.secret === undefined ? '' : String(job.ids.base)
    const sources = views.map(({ from }) => from)
    const [program, ...args] = endWithUs([
      ...['sh', '-c', enter, 'sh', place, owner],
      ...counted(hidden),
      ...counted(sources),
    ])
    return await runWatched(program as string, args, job)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

const runWatched = (program: string, args: readonly string[], job: Job): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const { timeoutMs, tookTooLong, signal, watch, secret } = job
    const env = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' }
    // Standard input and output are pipes, because crun changes their owner. With /dev/null, crun would change the owner of the
    // host's device.
    const child = spawn(program, args, { env, stdio: 'pipe' })
    child.stdin.on('error', () => {})
    child.stdin.end(secret?.text)
    const [stdout, stderr] = [heard(child.stdout, 'first'), heard(child.stderr, 'last')]
    let whyStopped: (() => unknown) | undefined
    const stop = (why: () => unknown) => {
      whyStopped ??= why
      child.kill('SIGKILL')
    }
    const timer = setTimeout(() => stop(() => tookTooLong(stderr().toString())), timeoutMs)
    const onAbort = () => stop(() => signal?.reason ?? new Error('aborted'))
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()

    let look: NodeJS.Timeout | undefined
    const lookSoon = () => {
      look = setTimeout(() => {
        watch?.(child.pid as number).then(
          () => {
            if (look !== undefined) lookSoon()
          },
          (error: unknown) => stop(() => error),
        )
      }, watchEveryMs)
    }
    if (watch !== undefined) lookSoon()

    const ended = () => {
      clearTimeout(timer)
      clearTimeout(look)
      look = undefined
      signal?.removeEventListener('abort', onAbort)
    }
    child.once('error', (error) => {
      ended()
      reject(error)
    })
    child.once('close', (exitCode) => {
      ended()
      if (whyStopped === undefined) resolve({ exitCode, stdout: stdout(), stderr: stderr().toString() })
      else reject(whyStopped())
    })
  })

/** Returns the bytes that a process and all its descendants have written so far. */
export const bytesWrittenBelow = async (pid: number): Promise<number> => {
  const text = (path: string) => readFile(path, 'utf8').catch(() => '')
  const own = Number(/^wchar: (\d+)$/m.exec(await text(`/proc/${pid}/io`))?.[1] ?? 0)
  const children = (await text(`/proc/${pid}/task/${pid}/children`)).split(' ').filter((word) => word !== '')
  const below = await Promise.all(children.map((child) => bytesWrittenBelow(Number(child))))
  return below.reduce((sum, bytes) => sum + bytes, own)
}
