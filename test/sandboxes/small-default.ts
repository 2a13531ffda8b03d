// A small default image, for servers whose tests only need a shell and files. Unpacking the real one is most of the work of a
// server's first start. The small one lies in a cache directory of its own, where a server looks for the real one.
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { defaultRecipe, recipeHash } from '#src/runner/images/recipe.ts'
import { uidBase } from '#src/runner/oci/ids.ts'
import { makeSmallImage } from '#src/runner/testing/small-image.ts'

const programs = [
  ...[
    'chmod',
    'cp',
    'date',
    'du',
    'env',
    'find',
    'grep',
    'head',
    'ln',
    'pgrep',
    'printf',
    'ps',
    'readlink',
    'sed',
    'seq',
  ],
  ...['setsid', 'sha256sum', 'sort', 'sync', 'timeout', 'touch', 'tr', 'uname', 'wc'],
]

/** The default user of the default image. */
const user = 1000

/** Makes the cache directory below `directory` if it is not there yet, and returns its path. */
export const smallDefaultIn = async (directory: string): Promise<string> => {
  const cache = join(directory, 'small-default')
  if (existsSync(cache)) return cache
  mkdirSync(directory, { recursive: true })
  const making = mkdtempSync(join(directory, '.small-default-'))
  try {
    const rootfs = join(making, 'rootfs')
    makeSmallImage(rootfs, programs)
    for (const open of ['tmp', 'var/tmp']) {
      mkdirSync(join(rootfs, open), { recursive: true })
      chmodSync(join(rootfs, open), 0o1777)
    }
    chownSync(join(rootfs, 'home/daytona'), uidBase + user, uidBase + user)
    const made = join(making, 'cache')
    mkdirSync(made)
    const archive = join(made, `default-${recipeHash(defaultRecipe())}.tar.zst`)
    await runCommand(['tar', '--create', '--zstd', '--numeric-owner', '--file', archive, '--directory', rootfs, '.'])
    // Files of a test run run side by side, and the first one that is finished is used by all.
    if (!existsSync(cache)) renameSync(made, cache)
  } catch (error) {
    if (!existsSync(cache)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return cache
}
