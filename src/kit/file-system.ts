import { access, constants, statfs } from 'node:fs/promises'

const btrfsMagic = 0x9123683e

export const isBtrfs = async (path: string): Promise<boolean> => (await statfs(path)).type === btrfsMagic

/** Whether this process can write to the path. False on a read-only file system, even for root. */
export const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

/** Returns the number of free bytes in a file system, without those that are reserved for root. */
export const freeBytes = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
