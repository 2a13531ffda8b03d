// A data directory may lie below one that is closed to other users, such as /root or what mktemp(1) makes.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const isOpenToAll = (path: string): boolean => {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

const mount = (...args: string[]) => {
  const { status, stderr } = spawnSync('mount', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`mount ${args.join(' ')} failed: ${stderr.trim()}`)
}

/**
 * Answers a path of this directory that every user may pass through: its own, or `view` with the directory mounted on
 * it. Only the directory itself shows there; the modes inside still decide who reads what.
 */
export const reachable = (directory: string, view: string): string => {
  if (isOpenToAll(directory)) return directory
  mkdirSync(view, { recursive: true, mode: 0o711 })
  const [seen, real] = [statSync(view), statSync(directory)]
  if (seen.dev !== real.dev || seen.ino !== real.ino) mount('-o', 'bind,nosuid,nodev', '--', directory, view)
  return view
}

/** Takes the view away again; nothing happens if there is none. */
export const endReachable = (view: string): void => {
  if (existsSync(view)) spawnSync('umount', ['--lazy', view], { stdio: 'ignore' })
}
