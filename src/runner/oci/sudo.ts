// Gives sandboxes sudo, without a file on any disk (docs/adr/0033), and decides who may use it.
//
// A sandbox's overlay has one more layer below those of the image. It contains links to the agent's program. A program that is
// started by the name `sudo` is thus the agent's program, which asks PID 1 to run the command. A file of the image or the sandbox
// at the path of a link hides the link.
import { lstatSync } from 'node:fs'
import { lchown, mkdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Assignment } from '#src/wire/runner-link.ts'
import { agentPathInside, type SudoPolicy } from './config.ts'
import { uidBase } from './ids.ts'

/**
 * Overlay layers that contain only links with the name `sudo` to the agent's program, one in each of `directories`. A sandbox gets
 * the first layer whose directories it already has. PATH has `/usr/local/bin` before `/usr/bin`, so a link there is used instead of
 * the image's own sudo, which cannot gain privileges in a sandbox.
 */
const layers = [
  { name: 'local', directories: ['usr/local/bin', 'usr/bin'] },
  { name: 'usr', directories: ['usr/bin'] },
  { name: 'bin', directories: ['bin'] },
] as const

const standardPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/**
 * Makes the directories of the overlay layers for sudo (`layers`) in `place`. Layers that exist stay unchanged, because running
 * sandboxes use them.
 */
export const makeSudoLayers = async (place: string): Promise<string> => {
  for (const { name, directories } of layers) {
    for (const directory of directories) {
      const link = join(place, name, directory, 'sudo')
      if ((await readlink(link).catch(() => undefined)) === agentPathInside) continue
      await mkdir(dirname(link), { recursive: true, mode: 0o755 })
      await symlink(agentPathInside, link)
      for (let at = link; at !== place; at = dirname(at)) await lchown(at, uidBase, uidBase)
    }
  }
  return place
}

const kindOf = (path: string) => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  return found === undefined ? 'nothing' : found.isDirectory() ? 'directory' : 'something else'
}

/**
 * Whether `directory` exists in an overlay of the directories `roots`, of which the uppermost comes first. Follows no symbolic
 * link, because a link could lead to files of the host.
 */
const isDirectoryIn = (roots: readonly string[], directory: string): boolean => {
  let merged = roots
  for (const name of directory.split('/')) {
    const below = merged.map((root) => join(root, name))
    const kinds = below.map(kindOf)
    if (kinds.find((kind) => kind !== 'nothing') !== 'directory') return false
    merged = below.filter((_, index) => kinds[index] === 'directory')
  }
  return true
}

/**
 * Returns the path of the overlay layer that gives a sandbox the command `sudo`. `roots`: the directories with the sandbox's own
 * files and those of its image. Undefined if no layer suits the directories that the sandbox has.
 */
export const sudoLayerFor = (place: string, roots: readonly string[]): string | undefined => {
  const layer = layers.find(({ directories }) => directories.every((directory) => isDirectoryIn(roots, directory)))
  return layer && join(place, layer.name)
}

/**
 * Returns who may use sudo in a sandbox besides root: its default user, or in a build every user, because a Dockerfile may change
 * the user. `ownPath`: the sandbox's PATH. A command that is run by sudo searches its directories first.
 */
export const sudoPolicyOf = ({ user, isBuild }: Pick<Assignment, 'user' | 'isBuild'>, ownPath: string): SudoPolicy => {
  const own = ownPath.split(':').filter((directory) => directory.startsWith('/'))
  return { user: isBuild ? '*' : user.replace(/:.*$/s, ''), path: [...new Set([...own, ...standardPath])].join(':') }
}
