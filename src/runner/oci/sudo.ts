// Gives sandboxes sudo, without a file on any disk (docs/adr/0033), and decides who may use sudo.
//
// The lowest layer of a sandbox's overlay links `sudo` to the agent's program, which asks PID 1 to run the command. If the image or
// the sandbox has a file at the link's path, this file hides the link.
import { lstatSync } from 'node:fs'
import { lchown, mkdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Assignment } from '#src/wire/runner-link.ts'
import { agentPathInside, type SudoPolicy } from './config.ts'
import { uidBase } from './ids.ts'

/**
 * Overlay layers for sudo. A layer has a link `sudo` to the agent's program in each of its `directories`. A sandbox gets the first
 * layer whose directories it already has. If the image has its own `/usr/bin/sudo`, PATH leads to Alcove's link in `/usr/local/bin`
 * first. The image's own sudo cannot gain privileges in a sandbox.
 */
const layers = [
  { name: 'local', directories: ['usr/local/bin', 'usr/bin'] },
  { name: 'usr', directories: ['usr/bin'] },
  { name: 'bin', directories: ['bin'] },
] as const

const standardPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/**
 * Makes the directories of the overlay layers for sudo (`layers`) in `place`. Layers that exist stay unchanged, because running
 * sandboxes use these layers.
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
 * Whether an overlay of `roots` (uppermost first) has the directory. Follows no symbolic link, because a link could lead to files
 * of the host.
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
 * Returns the path of the first overlay layer for sudo (`layers`) whose directories the sandbox already has. Undefined if there is
 * none. `roots`: directories with the sandbox's own files and with its image's files.
 */
export const sudoLayerFor = (place: string, roots: readonly string[]): string | undefined => {
  const layer = layers.find(({ directories }) => directories.every((directory) => isDirectoryIn(roots, directory)))
  return layer && join(place, layer.name)
}

/**
 * Returns who may use sudo besides root, and the directories where sudo searches for commands. A build allows every user, because a
 * Dockerfile may change the user.
 */
export const sudoPolicyOf = ({ user, isBuild }: Pick<Assignment, 'user' | 'isBuild'>, ownPath: string): SudoPolicy => {
  const own = ownPath.split(':').filter((directory) => directory.startsWith('/'))
  return { user: isBuild ? '*' : user.replace(/:.*$/s, ''), path: [...new Set([...own, ...standardPath])].join(':') }
}
