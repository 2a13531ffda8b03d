// Locks between processes. A lock lies on an open file of this process, so the kernel frees it when the process ends, however it
// ends: there is no stale lock. Node has no flock(2); the lock belongs to the open file, which flock(1) only borrows.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'

/** Not disposed of, it is kept until this process ends. */
export type Lock = Disposable

// Opened close-on-exec: no program that we start keeps the lock alive after us.
const open = (path: string): number => openSync(path, 'a', 0o600)

const isTaken = 75
const argumentsOf = (...options: string[]) => [...options, '--conflict-exit-code', String(isTaken), '3']

const lockOn = (file: number): Lock => ({ [Symbol.dispose]: () => closeSync(file) })

const tryOn = (file: number): boolean => {
  const stdio = ['ignore', 'ignore', 'ignore', file] as const
  const { status, error } = spawnSync('flock', argumentsOf('--nonblock'), { stdio: [...stdio] })
  if (error) throw error
  return status === 0
}

const waitOn = async (file: number, timeoutMs: number): Promise<boolean> => {
  const options = argumentsOf('--timeout', String(timeoutMs / 1000))
  const [status] = await once(spawn('flock', options, { stdio: ['ignore', 'ignore', 'inherit', file] }), 'close')
  return status === 0
}

/** `undefined` while somebody else holds it. */
export const tryLock = (path: string): Lock | undefined => {
  const file = open(path)
  if (tryOn(file)) return lockOn(file)
  closeSync(file)
  return undefined
}

type Waiting = {
  /** Somebody else holds it at this moment. */
  onWait?: () => void
  timeoutMs: number
}

/** Throws when it was not given back in time, or the path cannot be opened. */
export const waitForLock = async (path: string, { onWait, timeoutMs }: Waiting): Promise<Lock> => {
  const file = open(path)
  try {
    if (tryOn(file)) return lockOn(file)
    onWait?.()
    if (await waitOn(file, timeoutMs)) return lockOn(file)
    throw new Error(`waited ${timeoutMs / 1000} s for the lock ${path}`)
  } catch (error) {
    closeSync(file)
    throw error
  }
}
