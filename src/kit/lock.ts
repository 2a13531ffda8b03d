// Locks between processes, which the kernel frees when their process ends. Node has no flock(2), so flock(1) inherits the open
// file and locks it.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'

/** A lock that this process holds, until it disposes of the lock or ends. */
export type Lock = Disposable

// Programs that this process starts do not inherit the open file. Otherwise they could keep the lock after this process has freed
// it.
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

/** Tries to take a lock. Returns `undefined` immediately if another process holds it. */
export const tryLock = (path: string): Lock | undefined => {
  const file = open(path)
  if (tryOn(file)) return lockOn(file)
  closeSync(file)
  return undefined
}

type WaitOptions = {
  /** Called before the waiting begins, if another process holds the lock. */
  onWait?: () => void
  timeoutMs: number
}

/** Waits until this process gets the lock. Throws if the lock does not become free in time. */
export const waitForLock = async (path: string, { onWait, timeoutMs }: WaitOptions): Promise<Lock> => {
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
