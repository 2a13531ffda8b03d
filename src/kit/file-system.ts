import { access, constants, statfs } from 'node:fs/promises'

const btrfsMagic = 0x9123683e

export const isBtrfs = async (path: string): Promise<boolean> => (await statfs(path)).type === btrfsMagic

/** False also for root where the file system is mounted, or has made itself, read-only. */
export const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.W_OK).then(
    () => true,
    () => false,
  )

/** What one who is not root may still write, in bytes. */
export const freeBytes = async (path: string): Promise<number> => {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize
}
