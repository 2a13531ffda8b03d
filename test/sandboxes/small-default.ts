// A small default image, for servers whose tests only need a shell and files. Unpacking the real image is most of the work of a
// server's first start. The small image is in its own cache directory, at the path where a server looks for the real one.
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

/** Uid of the default user of the default image. */
const user = 1000

/** Makes the cache directory below `directory` if it does not exist yet, and returns its path. */
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
    // Test files run in parallel; all of them use the image that is finished first.
    if (!existsSync(cache)) renameSync(made, cache)
  } catch (error) {
    if (!existsSync(cache)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return cache
}
