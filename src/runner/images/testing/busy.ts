// For tests: what a killed runner left, where a program of it is still at work.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A directory that cannot be removed before somebody has tried to in vain. Needs root. */
export const makeBusy = (path: string): Disposable => {
  const [held, triedBefore] = [join(path, 'held'), join(path, 'there-until-tried')]
  mkdirSync(held, { recursive: true })
  writeFileSync(triedBefore, '')
  // Nobody can remove what something is mounted on.
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
