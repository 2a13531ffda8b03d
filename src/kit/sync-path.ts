// Waits until a file, or the entries of a directory, have been written to the disk (fsync).
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'

export const syncPath = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

export const syncPathNow = (path: string): void => {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
