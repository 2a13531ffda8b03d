// Makes a small default image for test servers that need only a shell, files and Python. These servers use a cache directory of
// their own. Unpacking the real default image at the first start takes much longer.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { defaultRecipe, recipeHash } from '#src/runner/images/recipe.ts'
import { uidBase } from '#src/runner/oci/ids.ts'
import { copyLibraries, giveToSandboxes, makeSmallImage } from '#src/runner/testing/small-image.ts'

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

const python = '/usr/bin/python3'
const unneededOfPython = /^(?:test|idlelib|lib2to3|ensurepip|pydoc_data|config-.*)$/

/** Copies the Python of this machine into the image, with its standard library. */
const addPython = (rootfs: string): void => {
  const ask = 'import sysconfig; print(sysconfig.get_path("stdlib"))'
  const library = execFileSync(python, ['-c', ask], { encoding: 'utf8' }).trim()
  mkdirSync(join(rootfs, 'usr/bin'), { recursive: true })
  copyFileSync(python, join(rootfs, python))
  const filter = (path: string) => !unneededOfPython.test(basename(path))
  // Preserve the times of files: Python uses a compiled module (.pyc) only if the module contains the modification time of its
  // source file.
  cpSync(library, join(rootfs, library), { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter })
  copyLibraries(rootfs, [python, ...globSync(join(library, 'lib-dynload/*.so'))])
}

/** Uid that the default user has in the default image. */
const user = 1000

/** Makes a cache directory with the small image below `directory`, unless this cache exists, and returns its path. */
export const smallDefaultIn = async (directory: string): Promise<string> => {
  const cache = join(directory, 'small-default')
  if (existsSync(cache)) return cache
  mkdirSync(directory, { recursive: true })
  const making = mkdtempSync(join(directory, '.small-default-'))
  try {
    const rootfs = join(making, 'rootfs')
    makeSmallImage(rootfs, programs)
    addPython(rootfs)
    giveToSandboxes(rootfs)
    for (const open of ['tmp', 'var/tmp']) {
      mkdirSync(join(rootfs, open), { recursive: true })
      chmodSync(join(rootfs, open), 0o1777)
    }
    chownSync(join(rootfs, 'home/daytona'), uidBase + user, uidBase + user)
    const made = join(making, 'cache')
    mkdirSync(made)
    const archive = join(made, `default-${recipeHash(defaultRecipe())}.tar.zst`)
    await runCommand(['tar', '--create', '--zstd', '--numeric-owner', '--file', archive, '--directory', rootfs, '.'])
    // Several test processes may make the image at the same time. All processes then use the image that was complete first.
    if (!existsSync(cache)) renameSync(made, cache)
  } catch (error) {
    if (!existsSync(cache)) throw error
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return cache
}
