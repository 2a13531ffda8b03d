// sudo inside sandboxes (docs/adr/0033): who may use it, and how it is found without a file on any disk.
//
// Below an image lies one more layer of its overlay. It holds links to the agent, which is the client of sudo where it is called
// so. Whatever an image, or the sandbox, has at these paths itself comes first.
import { lstatSync } from 'node:fs'
import { lchown, mkdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Assignment } from '#src/wire/runner-link.ts'
import { agentPathInside, type SudoPolicy } from './config.ts'
import { uidBase } from './ids.ts'

/**
 * Layers by the directories that they have a link in. A sandbox gets the first whose directories it has all of, so that no layer
 * adds a directory. `/usr/local/bin` is where sudo is found before Debian's own, which cannot work where nobody gains privileges.
 */
const layers = [
  { name: 'local', directories: ['usr/local/bin', 'usr/bin'] },
  { name: 'usr', directories: ['usr/bin'] },
  { name: 'bin', directories: ['bin'] },
] as const

const standardPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** Sandboxes that run have the layers already, so what is there is left as it is. */
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

/** Looks at `roots`, the uppermost first, as an overlay does. Follows no link, which could lead to files of the host. */
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

/** The layer for a sandbox with these files: its own, and those of its image. Undefined: nothing there looks like a system. */
export const sudoLayerFor = (place: string, roots: readonly string[]): string | undefined => {
  const layer = layers.find(({ directories }) => directories.every((directory) => isDirectoryIn(roots, directory)))
  return layer && join(place, layer.name)
}

/**
 * A build runs each of its steps as whom the definition says, root too, so all its users may. `ownPath` is the PATH of the
 * sandbox: root finds what the default user finds, and the system's directories.
 */
export const sudoPolicyOf = ({ user, isBuild }: Pick<Assignment, 'user' | 'isBuild'>, ownPath: string): SudoPolicy => {
  const own = ownPath.split(':').filter((directory) => directory.startsWith('/'))
  return { user: isBuild ? '*' : user.replace(/:.*$/s, ''), path: [...new Set([...own, ...standardPath])].join(':') }
}
