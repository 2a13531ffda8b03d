// sudo inside sandboxes (docs/adr/0033): who may use it, and how a sandbox gets it without a file on any disk.
//
// The overlay has one more layer below the image, with links to the agent. Called as `sudo`, the agent acts as its client. Files
// of the image or the sandbox at these paths have precedence.
import { lstatSync } from 'node:fs'
import { lchown, mkdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Assignment } from '#src/wire/runner-link.ts'
import { agentPathInside, type SudoPolicy } from './config.ts'
import { uidBase } from './ids.ts'

/**
 * Layers, named by the directories that contain their links. A sandbox gets the first layer whose directories all exist in the
 * sandbox, so no layer adds a directory. `/usr/local/bin` comes before Debian's own sudo in PATH. Debian's sudo cannot work,
 * because no process gains privileges.
 */
const layers = [
  { name: 'local', directories: ['usr/local/bin', 'usr/bin'] },
  { name: 'usr', directories: ['usr/bin'] },
  { name: 'bin', directories: ['bin'] },
] as const

const standardPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Makes the layers of links to the agent. Existing layers stay unchanged, because running sandboxes use them. */
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
 * Whether `directory` exists in an overlay of `roots`, the uppermost first. Follows no link, because a link could lead to files
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

/** The layer for a sandbox with these roots (its own files and those of its image). Undefined if no layer fits the roots. */
export const sudoLayerFor = (place: string, roots: readonly string[]): string | undefined => {
  const layer = layers.find(({ directories }) => directories.every((directory) => isDirectoryIn(roots, directory)))
  return layer && join(place, layer.name)
}

/**
 * A build runs each step as the user that the definition names, even root, so all its users may use sudo. `ownPath` is the PATH
 * of the sandbox: root finds what the default user finds, and the system's directories.
 */
export const sudoPolicyOf = ({ user, isBuild }: Pick<Assignment, 'user' | 'isBuild'>, ownPath: string): SudoPolicy => {
  const own = ownPath.split(':').filter((directory) => directory.startsWith('/'))
  return { user: isBuild ? '*' : user.replace(/:.*$/s, ''), path: [...new Set([...own, ...standardPath])].join(':') }
}
