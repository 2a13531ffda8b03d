// Steps that `up` and a joined host have in common: locking the data directory, and waiting for the signal to stop.
import { resolve } from 'node:path'
import { tryLock } from '#src/kit/lock.ts'
import { commandFor } from './command-for.ts'
import { Complaint } from './complaint.ts'
import type { DataDirectory } from './data-directory.ts'
import { findRunningUp } from './state-file.ts'

/** The directory of this checkout. */
export const codeDirectory = resolve(import.meta.dirname, '../..')

export const takeDataDirectory = (data: DataDirectory) => {
  // The lock is never disposed of, because this process must hold the lock until the process ends.
  if (tryLock(data.lockFile)) return
  const holder = findRunningUp(data.stateFile)
  const who = holder ? `by process ${holder.pid}, at ${holder.url}` : 'by another process that is just starting'
  throw new Complaint(`${data.path} is already in use ${who}. Stop the server with: ${commandFor('down', data.path)}`)
}

/** Resolves with the name of the first signal that asks this process to stop. Further signals have no effect. */
export const onceAskedToStop = () =>
  new Promise<NodeJS.Signals>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, resolve)
  })
