// For tests: makes files that cannot be removed at first, as if a program of a killed runner still used them.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Makes a directory whose first removal fails and whose later removal succeeds. Needs root. */
export const makeBusy = (path: string): Disposable => {
  const [held, triedBefore] = [join(path, 'held'), join(path, 'there-until-tried')]
  mkdirSync(held, { recursive: true })
  writeFileSync(triedBefore, '')
  // The mount keeps the directory `held` from being removed.
  execFileSync('mount', ['-t', 'tmpfs', 'alcove-test', held])
  let isHeld = true
  const letGo = () => {
    clearInterval(looking)
    if (isHeld) execFileSync('umount', [held])
    isHeld = false
  }
  const looking = setInterval(() => existsSync(triedBefore) || letGo(), 10)
  return { [Symbol.dispose]: letGo }
}
