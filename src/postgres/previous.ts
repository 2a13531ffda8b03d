// Ends the PostgreSQL processes of an earlier run. If its supervisor was killed, the postmaster still runs. If the
// postmaster was killed, its children may live a moment longer. Two servers on one cluster destroy the cluster, so no
// old process may be left.
//
// A process is recognized by its name and working directory, never by a pid alone, because pids are reused.
import { readdir, readFile, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '#src/kit/log.ts'

/**
 * Returns the path of the socket. PostgreSQL's lock file beside the socket holds the pid of the process that listens.
 */
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

/** Lists every PostgreSQL process of this cluster: the postmaster and its children. */
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

/** Ends all processes of the cluster with ever stronger signals. PostgreSQL can recover from each of these signals. */
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
  // Removes the pid files. Another process may have the pid in them by now, and PostgreSQL would take it for a running
  // server.
  for (const note of [join(cluster, 'postmaster.pid'), `${socketPath(socketDirectory)}.lock`]) {
    await rm(note, { force: true })
  }
}
