import { access, constants, statfs } from 'node:fs/promises'

const btrfsMagic = 0x9123683e

export const isBtrfs = async (path: string): Promise<boolean> => (await statfs(path)).type === btrfsMagic

/**
 * Whether this process can write to the path. False even for root if the file system is read-only, or became read-only
 * after an error.
 */
export const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

/** Number of free bytes in a file system that users other than root can still write. */
export const freeBytes = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
