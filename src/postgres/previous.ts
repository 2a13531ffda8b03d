// Ends the PostgreSQL processes that an earlier run of `up` has left, because two servers on one cluster destroy its data. The
// main process may be gone while its child processes still run. So this file finds all these processes by name and working
// directory. A pid is not enough, because the kernel may have given it to another process.
import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '#src/kit/log.ts'

/** Returns the path of PostgreSQL's socket. A lock file beside it contains the pid of the process that listens. */
export const socketPath = (socketDirectory: string): string => join(socketDirectory, '.s.PGSQL.5432')

const readPid = async (cluster: string) => {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number(text.split('\n')[0])
  return Number.isInteger(pid) && pid > 1 ? pid : undefined
}

const belongsTo = async (pid: number, cluster: string) => {
  try {
    const [name, directory] = await Promise.all([readFile(`/proc/${pid}/comm`, 'utf8'), readlink(`/proc/${pid}/cwd`)])
    return name.trim() === 'postgres' && directory === cluster
  } catch {
    return false
  }
}

/** Returns the pids of all PostgreSQL processes of this cluster: the main process (postmaster) and its children. */
export const listServerProcesses = async (directory: string): Promise<number[]> => {
  const cluster = await realpath(directory).catch(() => directory)
  const pids = (await readdir('/proc')).filter((entry) => /^\d+$/.test(entry)).map(Number)
  const ours = await Promise.all(pids.map((pid) => belongsTo(pid, cluster)))
  return pids.filter((_, index) => ours[index])
}

const signal = (pid: number, name: NodeJS.Signals) => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

const isCleared = async (cluster: string, seconds: number) => {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await pause(50)) {
    if ((await listServerProcesses(cluster)).length === 0) return true
  }
  return false
}

/**
 * Ends all PostgreSQL processes of the cluster, with stronger and stronger signals. PostgreSQL can repair its data after each of
 * these signals.
 */
export const endPrevious = async (cluster: string, socketDirectory: string, log: Logger): Promise<void> => {
  const running = await listServerProcesses(cluster)
  if (running.length > 0) {
    const postmaster = await readPid(cluster)
    log.warn({ postmaster, processes: running.length }, 'an earlier PostgreSQL still runs here; ending it')
    if (postmaster !== undefined && running.includes(postmaster)) {
      signal(postmaster, 'SIGINT')
      if (!(await isCleared(cluster, 10))) signal(postmaster, 'SIGQUIT')
    }
    if (!(await isCleared(cluster, 5))) {
      for (const pid of await listServerProcesses(cluster)) signal(pid, 'SIGKILL')
      if (!(await isCleared(cluster, 5))) throw new Error(`PostgreSQL processes in ${cluster} do not end.`)
    }
  }
  // If another process has the old pid now, the new PostgreSQL would believe that the old PostgreSQL still runs.
  for (const note of [join(cluster, 'postmaster.pid'), `${socketPath(socketDirectory)}.lock`]) {
    await rm(note, { force: true })
  }
}
